//! Tests of the audit file's content, and of changes while the file can't be written.

use super::*;

fn change(of: &str) -> Change {
    let actor = Actor { principal: "ann".into(), credential: "0123".into(), method: "api-key" };
    Change {
        act: "CatalogService/RegisterServer",
        tenant: "acme".into(),
        of: of.into(),
        actor,
        withdraws: false,
    }
}

fn lines(path: &Path) -> Vec<serde_json::Value> {
    let text = std::fs::read_to_string(path).expect("the file");
    text.lines().map(|line| serde_json::from_str(line).expect("JSON")).collect()
}

fn open(path: &Path) -> Audit {
    Audit::open(Some(path), AuthMetrics::default()).expect("a file")
}

#[tokio::test]
async fn a_change_is_told_before_and_after() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let audit = open(&path);
    let begun = audit.begin(change("git")).await.expect("it is written");
    let before = lines(&path);
    assert_eq!(before.len(), 1);
    assert_eq!((&before[0]["event"], &before[0]["tenant"]), (&"begins".into(), &"acme".into()));
    assert!(before[0].get("outcome").is_none() && before[0].get("accepted").is_none());
    begun.ends(Ok(Effect { revision: Some(7), accepted: 3, ..Effect::default() })).await;
    audit.begin(change("x")).await.expect("written").ends(Err("ETAG_MISMATCH")).await;
    let all = lines(&path);
    assert_eq!(all[0]["id"], all[1]["id"]);
    assert_ne!(all[0]["id"], all[2]["id"]);
    for (line, event, outcome, accepted) in
        [(&all[1], "ends", "done", 3), (&all[3], "ends", "ETAG_MISMATCH", 0)]
    {
        assert_eq!(
            (line["event"].as_str(), line["outcome"].as_str()),
            (Some(event), Some(outcome))
        );
        assert_eq!(line["accepted"], accepted);
        assert_eq!(
            (line["principal"].as_str(), line["method"].as_str()),
            (Some("ann"), Some("api-key"))
        );
    }
    assert_eq!((all[1]["revision"].as_u64(), all[1]["of"].as_str()), (Some(7), Some("git")));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        let mode = std::fs::metadata(&path).expect("the file").permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
    }
}

#[tokio::test]
async fn a_change_that_is_cut_off_is_told_so() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let audit = open(&path);
    drop(audit.begin(change("git")).await.expect("it is written"));
    for _ in 0..12_000 {
        if lines(&path).len() == 2 {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    assert_eq!(lines(&path)[1]["outcome"], "cut_off");
}

/// Checks that no change begins without the audit file: every write to /dev/full fails as on a full disk.
#[cfg(target_os = "linux")]
#[tokio::test]
async fn without_the_file_there_is_no_change() {
    let audit = open(Path::new("/dev/full"));
    let refused = audit.begin(change("git")).await.err().expect("a refusal");
    assert!(matches!(refused, Error::AuditFull(_)), "{refused:?}");
    assert!(refused.to_string().contains("the disk of the audit file is full"), "{refused}");
    assert!(Audit::open(Some(Path::new("/no/such/folder/a")), AuthMetrics::default()).is_err());
}

#[tokio::test]
async fn a_file_is_opened_again_when_it_is_rotated() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let old = folder.path().join("audit.1");
    let audit = Arc::new(open(&path));
    let over = CancellationToken::new();
    let (hangups, hung_up) = watch::channel(());
    let keeping = {
        let audit = Arc::clone(&audit);
        let over = over.clone();
        tokio::spawn(async move { audit.keep(hung_up, over).await })
    };
    audit.begin(change("a")).await.expect("written").ends(Ok(Effect::default())).await;
    std::fs::rename(&path, &old).expect("renamed");
    audit.begin(change("b")).await.expect("written").ends(Ok(Effect::default())).await;
    assert_eq!(lines(&old).len(), 4, "until it is told, it writes on");
    hangups.send_replace(());
    while !path.exists() {
        tokio::time::sleep(std::time::Duration::from_millis(5)).await;
    }
    // The file exists a moment before it is written to.
    over.cancel();
    keeping.await.expect("it ends");
    audit.begin(change("c")).await.expect("written").ends(Ok(Effect::default())).await;
    assert_eq!((lines(&old).len(), lines(&path).len()), (4, 2));
}

#[tokio::test]
async fn a_torn_line_does_not_take_the_next_with_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let audit = open(&path);
    {
        let open = &audit.file.as_ref().expect("a file").open;
        let mut open = open.lock();
        open.file.write_all(b"{\"time\":").expect("half a line");
        open.torn = true;
    }
    audit.begin(change("a")).await.expect("written").ends(Ok(Effect::default())).await;
    let text = std::fs::read_to_string(&path).expect("the file");
    let whole: Vec<_> = text.lines().skip(1).collect();
    assert_eq!(whole.len(), 2);
    assert!(whole.iter().all(|line| serde_json::from_str::<serde_json::Value>(line).is_ok()));
}

#[tokio::test]
async fn what_was_set_aside_is_for_what_takes_content_away() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("audit.jsonl");
    let room = folder.path().join("audit.jsonl-reserve");
    let audit = open(&path);
    assert_eq!(room.metadata().expect("set aside when it is opened").len(), RESERVE);
    let file = audit.file.as_deref().expect("a file");
    // The disk is full until the reserve is released.
    let written = |withdraws: bool| {
        with_room(file.reserve.as_ref().filter(|_| withdraws), || match room.exists() {
            true => Err(io::ErrorKind::StorageFull.into()),
            false => write(&file.open, b"{}\n"),
        })
    };
    assert!(written(false).is_err_and(|error| is_full(&error)));
    assert!(room.exists(), "what comes gets none of it");
    written(true).expect("room for what goes");
    assert!(!room.exists() && lines(&path).len() == 1);
    audit.begin(change("a")).await.expect("written").ends(Ok(Effect::default())).await;
    assert!(room.exists(), "set aside again when there is room");
    let broken = || -> io::Result<()> { Err(io::ErrorKind::PermissionDenied.into()) };
    assert!(with_room(file.reserve.as_ref(), broken).is_err());
    assert!(room.exists(), "it helps against nothing else");
}
