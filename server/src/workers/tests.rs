//! The supervisor, with shell scripts as workers.
#![cfg(unix)]

use super::search::Search;
use super::*;
use toolgate_encoder::Device;

const SOON: Duration = Duration::from_secs(60);

fn limits() -> SupervisorLimits {
    let tiny = Duration::from_millis(10);
    SupervisorLimits {
        pause_min: tiny,
        pause_max: tiny * 8,
        stop: tiny * 20,
        ..SupervisorLimits::default()
    }
}

/// Starts a script as a worker. `say PORT` in the script reports an address as a worker does.
fn shell(script: &str) -> Workers {
    let say = r#"say() { echo "{\"message\":\"listening\",\"grpc\":\"127.0.0.1:$1\"}" >&2; }"#;
    let script = format!("{say}; {script}");
    let command = WorkerCommand {
        name: "test".into(),
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        gpu: None,
    };
    Workers::start(vec![command], limits(), &EncoderMetrics::default())
}

/// Waits until `want` accepts the addresses.
async fn until(workers: &Workers, want: impl Fn(&[String]) -> bool) -> Vec<String> {
    let mut addresses = workers.addresses();
    let found = tokio::time::timeout(SOON, addresses.wait_for(|all| want(all))).await;
    found.expect("in time").expect("still supervised").clone()
}

#[tokio::test]
async fn a_process_that_ends_is_started_again_and_is_known_while_it_lives() {
    // Each process has a port of its own, derived from its process ID.
    let workers = shell("say $((1024 + $$ % 60000)); sleep 0.3; exit 5");
    let first = until(&workers, |all| !all.is_empty()).await;
    until(&workers, <[String]>::is_empty).await;
    let second = until(&workers, |all| !all.is_empty()).await;
    assert_ne!(first, second);
    workers.stop().await;
}

#[tokio::test]
async fn a_process_that_lets_itself_be_stopped_is() {
    let workers = shell("trap 'exit 0' TERM; say 1; while :; do sleep 0.05; done");
    until(&workers, |all| !all.is_empty()).await;
    let began = Instant::now();
    let addresses = workers.addresses();
    workers.stop().await;
    assert!(addresses.borrow().is_empty() && began.elapsed() < SOON);
}

#[tokio::test]
async fn a_process_that_ignores_sigterm_is_killed() {
    let folder = tempfile::tempdir().expect("a folder");
    let id_file = folder.path().join("id");
    let script = "trap '' TERM; echo $$ > ID; say 1; while :; do sleep 0.05; done";
    let workers = shell(&script.replace("ID", &id_file.to_string_lossy()));
    until(&workers, |all| !all.is_empty()).await;
    workers.stop().await;
    let id = std::fs::read_to_string(&id_file).expect("written");
    let id = rustix::process::Pid::from_raw(id.trim().parse().expect("a number"));
    let alive = rustix::process::test_kill_process(id.expect("a process"));
    assert!(alive.is_err(), "it is gone, and was waited for");
}

#[tokio::test]
async fn one_that_can_not_start_is_tried_again() {
    let folder = tempfile::tempdir().expect("a folder");
    let program = folder.path().join("worker");
    let command = WorkerCommand {
        name: "test".into(),
        program: program.clone(),
        arguments: Vec::new(),
        gpu: None,
    };
    let workers = Workers::start(vec![command], limits(), &EncoderMetrics::default());
    tokio::time::sleep(Duration::from_millis(50)).await;
    assert!(workers.addresses().borrow().is_empty());
    // The file is moved into place, because a program that is being written can't be run.
    let written = folder.path().join("written");
    let line = r#"{"message":"listening","grpc":"127.0.0.1:1"}"#;
    let script = format!("#!/bin/sh\necho '{line}' >&2\nexec sleep 60\n");
    std::fs::write(&written, script).expect("written");
    let all = std::os::unix::fs::PermissionsExt::from_mode(0o700);
    std::fs::set_permissions(&written, all).expect("executable");
    std::fs::rename(&written, &program).expect("moved");
    until(&workers, |all| !all.is_empty()).await;
    workers.stop().await;
}

#[tokio::test]
async fn one_that_says_that_it_can_never_run_is_left_alone() {
    let folder = tempfile::tempdir().expect("a folder");
    let starts = folder.path().join("starts");
    let workers = shell(&format!("echo one >> {}; exit 3", starts.display()));
    let began = std::time::Instant::now();
    while !starts.exists() && began.elapsed() < SOON {
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
    // Long enough for many restart pauses.
    tokio::time::sleep(Duration::from_millis(300)).await;
    assert_eq!(std::fs::read_to_string(&starts).expect("it was started"), "one\n");
    workers.stop().await;
}

#[test]
fn pauses_double_up_to_a_bound() {
    let pauses: Vec<_> = (0..6).map(|ends| limits().pause(ends).as_millis()).collect();
    assert_eq!(pauses, [10, 20, 40, 80, 80, 80]);
    assert_eq!(limits().pause(u32::MAX).as_millis(), 80);
}

fn command_on(device: toolgate_encoder::Device, visible: Option<&str>) -> WorkerCommand {
    let adapter = "a/b".parse().expect("a choice");
    WorkerCommand::on(device, visible, "m".as_ref(), &adapter).expect("a command")
}

fn line_of(command: &WorkerCommand) -> String {
    let arguments: Vec<_> = command.arguments.iter().filter_map(|one| one.to_str()).collect();
    arguments.join(" ")
}

#[test]
fn gpus_that_are_listed_by_uuid_are_shown_to_one_worker_each() {
    let cuda = toolgate_encoder::Device::Cuda;
    let slices = Some("MIG-1a, MIG-2b,GPU-3c");
    for (index, visible, device, gpu) in [
        (0, slices, "cuda:0", Some("MIG-1a")),
        (1, slices, "cuda:0", Some("MIG-2b")),
        (2, slices, "cuda:0", Some("GPU-3c")),
        (3, slices, "cuda:3", None),
        (1, Some("2,3"), "cuda:1", None),
        (1, Some(""), "cuda:1", None),
        (1, None, "cuda:1", None),
    ] {
        let command = command_on(cuda(index), visible);
        let line = line_of(&command);
        assert!(line.contains(&format!("--device {device} ")), "{visible:?}: {line}");
        assert_eq!(command.gpu.as_deref(), gpu, "{visible:?}");
        assert_eq!(command.name, format!("cuda:{index}"), "as it was asked for");
    }
    assert_eq!(command_on(toolgate_encoder::Device::Cpu, slices).gpu, None);
}

#[tokio::test]
async fn a_process_sees_its_own_gpu() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("seen");
    let script = format!(
        "echo $CUDA_VISIBLE_DEVICES > {}; echo '{{\"message\":\"listening\",\"grpc\":\"127.0.0.1:1\"}}' >&2; \
         exec sleep 60",
        file.display()
    );
    let command = WorkerCommand {
        name: "test".into(),
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), script.into()],
        gpu: Some("MIG-1a".into()),
    };
    let workers = Workers::start(vec![command], limits(), &EncoderMetrics::default());
    until(&workers, |all| !all.is_empty()).await;
    assert_eq!(std::fs::read_to_string(&file).expect("written"), "MIG-1a\n");
    workers.stop().await;
}

/// Finds GPUs by scripts in place of the worker's program, each for all GPUs or for one.
async fn found_by(scripts: &[(&str, Option<&str>)], within: Duration) -> FoundGpus {
    let search = |(script, gpu): &(&str, Option<&str>)| Search {
        program: "/bin/sh".into(),
        arguments: vec!["-c".into(), (*script).into()],
        gpu: gpu.map(str::to_owned),
    };
    FoundGpus::by(scripts.iter().map(search).collect(), within).await
}

#[tokio::test]
async fn gpus_that_work_are_found_with_the_reasons_of_others() {
    let script = r#"echo '{"usable":[0,2],"problems":["cuda:1: too old"]}'"#;
    let found = found_by(&[(script, None)], SOON).await;
    assert_eq!(found.usable, [Device::Cuda(0), Device::Cuda(2)]);
    assert_eq!(found.problems, ["cuda:1: too old"]);
}

#[tokio::test]
async fn each_slice_is_looked_at_alone() {
    let works = r#"test "$CUDA_VISIBLE_DEVICES" = MIG-c && echo '{"usable":[0],"problems":[]}'"#;
    let fails = r#"echo '{"usable":[],"problems":["too small"]}'"#;
    let found = found_by(&[(fails, Some("MIG-b")), (works, Some("MIG-c"))], SOON).await;
    assert_eq!(
        (found.usable, found.problems),
        (vec![Device::Cuda(1)], vec!["MIG-b: too small".to_owned()])
    );
}

#[tokio::test]
async fn a_driver_that_ends_its_process_or_hangs_is_a_reason() {
    for (script, within, problem) in [
        ("kill -SEGV $$", SOON, "signal: 11"),
        ("exit 3", SOON, "exit status: 3"),
        ("echo no list", SOON, "the search for GPUs failed"),
        ("exec sleep 600", Duration::from_millis(1), "did not answer within 1ms"),
    ] {
        let found = found_by(&[(script, None)], within).await;
        assert!(found.usable.is_empty(), "{script}: {found:?}");
        assert!(found.problems.iter().any(|one| one.contains(problem)), "{script}: {found:?}");
    }
}

#[test]
fn a_worker_is_told_its_device_its_model_and_to_choose_a_port() {
    let device = toolgate_encoder::Device::Cuda(3);
    let command = command_on(device, None);
    let line = line_of(&command);
    for part in [
        "--device cuda:3",
        "--listen 127.0.0.1:0",
        "--model-dir m",
        "--adapter a/b",
        "--until-stdin-ends",
    ] {
        assert!(line.contains(part), "{line}");
    }
    assert_eq!(command.name, "cuda:3");
    assert!(!line.contains("--max-batch-tokens"), "the worker knows its device: {line}");
}
