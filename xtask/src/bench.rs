//! Lists the benchmarks and runs one by name.

use anyhow::bail;

use crate::process;

/// The name of a benchmark, the promise that it measures, and the cargo arguments that run it.
struct Bench {
    name: &'static str,
    about: &'static str,
    cargo: &'static [&'static str],
}

/// All benchmarks, one row each.
const BENCHES: &[Bench] = &[
    Bench {
        name: "admission",
        about: "creates through admission hooks, matching, and what synchronisation costs",
        cargo: &["run", "--release", "--package", "bench", "--", "admission"],
    },
    Bench {
        name: "authz",
        about: "time per decision of the authorizers, beside naive ones and Kubernetes' own",
        cargo: &["run", "--release", "--package", "bench", "--", "authz"],
    },
    Bench {
        name: "cel",
        about: "time per evaluation of match conditions, beside other CEL engines",
        cargo: &[
            "run",
            "--release",
            "--manifest-path",
            "peers/cel-rust/Cargo.toml",
            "--target-dir",
            "target/peers",
        ],
    },
    Bench {
        name: "floor",
        about: "CPU time per request beside a server that answers constants, and beside kube-apiserver",
        cargo: &["run", "--release", "--package", "bench", "--", "floor"],
    },
    Bench {
        name: "server",
        about: "requests a second, latency and memory of the server over TLS",
        cargo: &["run", "--release", "--package", "bench", "--", "server"],
    },
    Bench {
        name: "webhook",
        about: "time per answer of authorization webhooks, cached and called, beside Kubernetes' own",
        cargo: &["run", "--release", "--package", "bench", "--", "webhook"],
    },
];

/// Runs the named benchmark, or lists all. The benchmark gets the arguments after its name.
pub(crate) fn run(args: &[&str]) -> anyhow::Result<()> {
    match args {
        [] => {
            for bench in BENCHES {
                println!("{:10} {}", bench.name, bench.about);
            }
            Ok(())
        }
        [name, rest @ ..] => {
            let cargo = find(name)?.cargo;
            let end: &[&str] = if cargo.contains(&"--") { &[] } else { &["--"] };
            let arguments = [cargo, end, rest].concat();
            process::run(&mut process::command("cargo", &arguments))
        }
    }
}

fn find(name: &str) -> anyhow::Result<&'static Bench> {
    if let Some(bench) = BENCHES.iter().find(|bench| bench.name == name) {
        return Ok(bench);
    }
    let known: Vec<&str> = BENCHES.iter().map(|bench| bench.name).collect();
    bail!("unknown benchmark `{name}`, known: {}", known.join(", "))
}

#[cfg(test)]
mod tests {
    use super::find;

    #[test]
    fn benchmarks_are_found_by_name_only() {
        assert_eq!(find("cel").unwrap().name, "cel");
        assert_eq!(find("authz").unwrap().name, "authz");
        assert_eq!(find("server").unwrap().name, "server");
        assert_eq!(find("webhook").unwrap().name, "webhook");
        let error = find("cle").err().unwrap().to_string();
        assert_eq!(
            error,
            "unknown benchmark `cle`, known: admission, authz, cel, floor, server, webhook"
        );
    }
}
