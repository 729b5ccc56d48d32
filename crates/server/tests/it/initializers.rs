//! Objects that wait for initializers, over real sockets and with a clock that tests advance.

mod creating;
mod failing;
mod hooks;
mod orders;
mod repair;
mod scene;
mod sight;
mod timers;
mod two_servers;
mod unusable;
mod updating;
mod waiting_limits;
