//! Exit codes, streams and input that is no configuration.

use std::io::Read;
use std::path::Path;
use std::process::Stdio;

use serde_json::Value;

use crate::guard::kubeconfig_of;
use crate::program::{TESTDATA, command, finish, run, run_with_stdin};

/// The reference sample, with the path of its kubeconfig file replaced.
fn reference_sample(kubeconfig: &Path) -> String {
    let sample = std::fs::read_to_string(Path::new(TESTDATA).join("valid.yaml")).unwrap();
    let changed = sample.replace("/etc/portcullis/guard.yaml", kubeconfig.to_str().unwrap());
    assert_ne!(changed, sample);
    changed
}

#[test]
fn the_reference_sample_is_valid() {
    let folder = tempfile::tempdir().unwrap();
    let kubeconfig = folder.path().join("guard.yaml");
    let authority = fake_http::Authority::new("guard").unwrap();
    std::fs::write(folder.path().join("ca.crt"), authority.pem()).unwrap();
    std::fs::write(&kubeconfig, kubeconfig_of("https://127.0.0.1:1/", "ca.crt")).unwrap();
    let file = folder.path().join("authorization.yaml");
    std::fs::write(&file, reference_sample(&kubeconfig)).unwrap();
    let file = file.to_str().unwrap();
    let found = run(&["check", "--strict", file]);
    assert_eq!((found.code, found.stderr.as_str()), (0, ""));
    let authorizers = "3 authorizers: guard.example.com, node, rbac";
    assert!(found.stdout.starts_with(&format!("{file}: valid (AuthorizationConfiguration")));
    assert!(found.stdout.contains(authorizers), "{}", found.stdout);

    // Without the kubeconfig file it is valid only where its absence does not matter.
    std::fs::remove_file(&kubeconfig).unwrap();
    let found = run(&["check", file]);
    assert_eq!(found.code, 1);
    for part in [
        "error loading file: stat ",
        "= help: if the file exists only on the server, use `--assume-files-exist`",
    ] {
        assert!(found.stdout.contains(part), "{}", found.stdout);
    }
    assert_eq!(run(&["check", "--assume-files-exist", file]).code, 0);
}

#[test]
fn the_exit_code_tells_what_happened() {
    let check = |args: &[&str]| run(&[&["check", "--assume-files-exist"], args].concat()).code;
    assert_eq!(check(&["valid.yaml"]), 0);
    assert_eq!(check(&["warnings.yaml"]), 0);
    assert_eq!(check(&["--strict", "warnings.yaml"]), 1);
    assert_eq!(check(&["values.yaml"]), 1);
    assert_eq!(check(&["missing.yaml"]), 3);
    // The worst of several wins, in any order and for any output.
    for output in ["human", "json", "sarif"] {
        assert_eq!(check(&["-o", output, "valid.yaml", "values.yaml"]), 1, "{output}");
        assert_eq!(check(&["-o", output, "values.yaml", "valid.yaml"]), 1, "{output}");
        assert_eq!(check(&["-o", output, "missing.yaml", "values.yaml"]), 3, "{output}");
        assert_eq!(check(&["-o", output, "valid.yaml", "missing.yaml"]), 3, "{output}");
    }
    for wrong in [
        &["check"][..],
        &["check", "-o", "xml", "valid.yaml"],
        &["check", "--no-such-flag", "valid.yaml"],
        &["check", "-", "valid.yaml", "-"],
        &["schema", "Deployment"],
        &["completion", "cmd"],
        &["chekc", "valid.yaml"],
        &[],
    ] {
        let found = run(wrong);
        assert_eq!((found.code, found.stdout.as_str()), (2, ""), "{wrong:?}");
        assert_ne!(found.stderr, "", "{wrong:?}");
    }
}

#[test]
fn what_can_not_be_read_is_named() {
    let found = run(&["check", "missing.yaml", "valid.yaml/x", "--assume-files-exist"]);
    assert_eq!(found.code, 3);
    assert_eq!(
        found.stderr,
        "error: open missing.yaml: no such file or directory\n\
         error: open valid.yaml/x: not a directory\n"
    );
    assert_eq!(found.stdout, "2 files: 2 unreadable\n");

    // Programs find it in the result and not beside it.
    let found = run(&["check", "-o", "json", "missing.yaml"]);
    assert_eq!((found.code, found.stderr.as_str()), (3, ""));
    let report: Value = serde_json::from_str(&found.stdout).unwrap();
    assert_eq!(report["valid"], false);
    assert_eq!(report["errors"][0]["type"], "Unreadable");
    assert_eq!(report["errors"][0]["file"], "missing.yaml");
    assert_eq!(report["errors"][0]["line"], Value::Null);
    let found = run(&["check", "-o", "sarif", "missing.yaml"]);
    assert_eq!((found.code, found.stderr.as_str()), (3, ""));
    let log: Value = serde_json::from_str(&found.stdout).unwrap();
    let invocation = &log["runs"][0]["invocations"][0];
    assert_eq!(invocation["executionSuccessful"], false);
    assert_eq!(
        invocation["toolExecutionNotifications"][0]["message"]["text"],
        "open missing.yaml: no such file or directory"
    );
}

#[test]
fn standard_input_is_a_file_like_others() {
    let sample = std::fs::read(Path::new(TESTDATA).join("valid.yaml")).unwrap();
    let found = run_with_stdin(&["check", "--assume-files-exist", "-"], &sample);
    assert_eq!(found.code, 0);
    assert!(found.stdout.starts_with("<stdin>: valid ("), "{}", found.stdout);

    let flags = ["check", "--stdin-filename", "config/a.yaml", "-"];
    let found = run_with_stdin(&flags, b"kind: x");
    assert_eq!(found.code, 1);
    assert!(found.stdout.contains("--> config/a.yaml:1:1\n"), "{}", found.stdout);
    assert!(found.stdout.ends_with("config/a.yaml: invalid: 1 error\n"), "{}", found.stdout);

    // An empty file is a configuration without authorizers.
    let found = run_with_stdin(&["check", "-"], b"");
    assert_eq!(found.code, 1);
    for part in [
        "error: authorizers: Required value: at least one authorization mode must be defined\n",
        "= help: the input is empty\n",
    ] {
        assert!(found.stdout.contains(part), "{}", found.stdout);
    }
}

#[test]
fn input_that_is_no_text_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let check = |bytes: &[u8]| {
        let file = folder.path().join("junk");
        std::fs::write(&file, bytes).unwrap();
        let found = run(&["check", file.to_str().unwrap()]);
        assert_eq!((found.code, found.stderr.as_str()), (1, ""));
        found.stdout
    };
    assert!(check(b"\x7fELF\x02\x01\x01\0\0").contains("error: yaml: "));
    assert!(check(b"\xff\xff\xff\xff").contains("error: yaml: invalid UTF-8\n"));
    let huge = check("# comment\n".repeat(1 << 18).as_bytes());
    assert!(huge.contains("error: file is larger than 1048576 bytes\n"), "{huge}");
    let one_line = check(format!("[{}", "1,".repeat(1 << 18)).as_bytes());
    assert!(one_line.len() < 10_000, "{} bytes", one_line.len());
}

#[test]
fn a_reader_may_go_away() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("faulty.yaml");
    let header = "apiVersion: apiserver.config.k8s.io/v1\nkind: AuthorizationConfiguration\n";
    // More findings than fit into a pipe, so that the program must notice.
    let text = format!("{header}authorizers:\n{}", "- {}\n".repeat(20_000));
    std::fs::write(&file, text).unwrap();
    for args in
        [&["check", "-o", "json", file.to_str().unwrap()][..], &["completion", "bash"], &["schema"]]
    {
        let mut child =
            command(args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
        let mut first = [0];
        let mut stdout = child.stdout.take().unwrap();
        stdout.read_exact(&mut first).unwrap();
        drop(stdout);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.stderr, b"", "{args:?}");
        // The exit code is that of the result.
        let want = i32::from(args[0] == "check");
        assert_eq!(output.status.code(), Some(want), "{args:?}");
    }
}

#[cfg(target_os = "linux")]
#[test]
fn a_result_that_can_not_be_written_is_no_success() {
    for args in [&["schema"][..], &["check", "--assume-files-exist", "valid.yaml"]] {
        let full = std::fs::OpenOptions::new().write(true).open("/dev/full").unwrap();
        let output = command(args).stdout(full).stderr(Stdio::piped()).output().unwrap();
        assert_eq!(output.status.code(), Some(3), "{args:?}");
        let message = String::from_utf8(output.stderr).unwrap();
        assert!(message.starts_with("error: cannot write the result: "), "{message}");
    }
}

#[test]
fn a_pipe_gets_no_colour() {
    for variable in [("TERM", "xterm-256color"), ("CLICOLOR_FORCE", "1"), ("NO_COLOR", "1")] {
        let mut command = command(&["check", "values.yaml"]);
        command.env(variable.0, variable.1);
        let found = finish(command, b"");
        assert!(!found.stdout.contains('\u{1b}'), "{variable:?}");
        assert!(found.stdout.contains("error: "), "{variable:?}");
    }
}

#[test]
fn the_schema_is_printed_as_json() {
    let schema: Value = serde_json::from_str(&run(&["schema"]).stdout).unwrap();
    assert_eq!(schema["title"], "AuthorizationConfiguration");
    for name in ["AuthorizationConfiguration", "authorizationconfiguration"] {
        let named: Value = serde_json::from_str(&run(&["schema", name]).stdout).unwrap();
        assert_eq!(named, schema);
    }
    let found = run(&["schema", "Deployment"]);
    assert!(found.stderr.contains("AuthorizationConfiguration"), "{}", found.stderr);
}

#[test]
fn every_shell_gets_completions() {
    for shell in ["bash", "elvish", "fish", "powershell", "zsh"] {
        let found = run(&["completion", shell]);
        assert_eq!((found.code, found.stderr.as_str()), (0, ""), "{shell}");
        assert!(found.stdout.contains("assume-files-exist"), "{shell}");
    }
}

#[test]
fn the_version_is_that_of_the_crate() {
    let found = run(&["--version"]);
    assert_eq!(found.code, 0);
    assert_eq!(found.stdout, concat!("portcullis ", env!("CARGO_PKG_VERSION"), "\n"));
}
