//! Tests that a copy is read back exactly as it was kept, and that no other copy is served.

use super::*;
use crate::conformance::{hash_of, tenant, tool};
use crate::{ServerRecord, StoredServer, StoredTool, ToolRecord, ToolStatus};

const ENCODER: &str = "encoder-1";

fn catalog(revision: u64, tools: usize) -> StoredCatalog {
    let record = ServerRecord::new(crate::conformance::server_name("s"));
    let shown =
        |i| StoredTool { record: tool("s", &format!("t{i}"), "\0 summary"), summary_revision: 1 };
    let waiting = ToolRecord { status: ToolStatus::Quarantined, ..tool("s", "w", "W") };
    let waiting = StoredTool { record: waiting, summary_revision: 1 };
    StoredCatalog {
        revision,
        servers: vec![StoredServer { record, revision, updated_ms: 7, tool_count: 1 }],
        tools: (0..tools).map(shown).collect(),
        quarantined: vec![waiting],
        ..StoredCatalog::default()
    }
}

fn embeddings() -> Embeddings {
    [(hash_of("a"), vec![0.5, -1.0]), (hash_of("b"), vec![f32::MIN, 0.0])].into()
}

fn packed(name: &str, revision: u64, tools: usize) -> Packed {
    let catalog = catalog(revision, tools);
    Copies::pack(&tenant(name), ENCODER, &catalog, &embeddings()).expect("a copy")
}

fn revision(copies: &Copies, name: &str) -> Option<u64> {
    copies.read(&tenant(name), ENCODER).map(|(catalog, _)| catalog.revision)
}

#[test]
fn a_copy_comes_back_whole() {
    let folder = tempfile::tempdir().expect("a folder");
    let copies = Copies::open(folder.path(), 1 << 20).expect("copies");
    assert!(!copies.has(&tenant("acme")) && copies.read(&tenant("acme"), ENCODER).is_none());
    copies.keep(&packed("acme", 3, 2)).expect("kept");
    copies.keep(&packed("acme", 4, 2)).expect("kept");
    let wanted = (catalog(4, 2), embeddings());
    assert_eq!(copies.read(&tenant("acme"), ENCODER), Some(wanted.clone()));
    // Another encoder's embeddings are useless, but the catalog is not.
    let other = copies.read(&tenant("acme"), "encoder-2").expect("the catalog");
    assert_eq!(other, (catalog(4, 2), Embeddings::new()));
    drop(copies);
    let copies = Copies::open(folder.path(), 1 << 20).expect("copies again");
    assert_eq!(copies.read(&tenant("acme"), ENCODER), Some(wanted));
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt;
        let path = copies.folder.join(name_of("acme"));
        assert_eq!(path.metadata().expect("a file").permissions().mode() & 0o777, 0o600);
    }
}

#[test]
fn no_damaged_copy_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let copies = Copies::open(folder.path(), 1 << 20).expect("copies");
    copies.keep(&packed("acme", 3, 1)).expect("kept");
    let path = copies.folder.join(name_of("acme"));
    let whole = fs::read(&path).expect("a copy");
    for length in 0..whole.len() {
        fs::write(&path, &whole[..length]).expect("cut short");
        assert_eq!(revision(&copies, "acme"), None, "cut at {length}");
    }
    for place in 0..whole.len() {
        let mut bytes = whole.clone();
        bytes[place] ^= 0x40;
        fs::write(&path, &bytes).expect("damaged");
        assert_eq!(revision(&copies, "acme"), None, "changed at {place}");
    }
    let mut longer = whole.clone();
    longer.push(0);
    fs::write(&path, &longer).expect("longer");
    assert_eq!(revision(&copies, "acme"), None);
    fs::write(&path, &whole).expect("whole again");
    assert_eq!(revision(&copies, "acme"), Some(3));
}

#[test]
fn no_other_tenants_copy_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let copies = Copies::open(folder.path(), 1 << 20).expect("copies");
    copies.keep(&packed("acme", 3, 1)).expect("kept");
    let from = copies.folder.join(name_of("acme"));
    let to = copies.folder.join(name_of("other"));
    fs::copy(from, to).expect("a copy under another's name");
    assert_eq!(revision(&copies, "other"), None);
}

#[test]
fn no_other_versions_copy_is_served() {
    let folder = tempfile::tempdir().expect("a folder");
    let copies = Copies::open(folder.path(), 1 << 20).expect("copies");
    copies.keep(&packed("acme", 3, 1)).expect("kept");
    let path = copies.folder.join(name_of("acme"));
    let mut bytes = fs::read(&path).expect("a copy");
    bytes[7] += 1;
    // Build a copy as another version would have written it, with a valid hash.
    let (head, content) = bytes.split_at(HEAD);
    let hash: ContentHash = Sha256::new()
        .chain_update(&head[..8])
        .chain_update(&head[40..])
        .chain_update(content)
        .finalize()
        .into();
    let whole = [&head[..8], &hash, &head[40..], content].concat();
    fs::write(&path, whole).expect("another version's");
    assert_eq!(revision(&copies, "acme"), None);
}

#[test]
fn those_used_longest_ago_make_room() {
    let folder = tempfile::tempdir().expect("a folder");
    let one = packed("a", 1, 10).bytes.len() as u64;
    let copies = Copies::open(folder.path(), 3 * one + one / 2).expect("copies");
    for name in ["a", "b", "c"] {
        copies.keep(&packed(name, 1, 10)).expect("kept");
    }
    assert_eq!(revision(&copies, "a"), Some(1), "used again");
    copies.keep(&packed("d", 1, 10)).expect("kept");
    let there: Vec<_> =
        ["a", "b", "c", "d"].into_iter().filter(|name| copies.has(&tenant(name))).collect();
    assert_eq!(there, ["a", "c", "d"]);
    let files = fs::read_dir(&copies.folder).expect("files").count();
    assert_eq!(files, 3);
    // A copy that could never fit is not kept, and displaces no other copy.
    copies.keep(&packed("e", 1, 100)).expect("passed over");
    assert!(!copies.has(&tenant("e")) && copies.has(&tenant("a")));
    drop(copies);
    let copies = Copies::open(folder.path(), one).expect("less room");
    let files = fs::read_dir(&copies.folder).expect("files").count();
    assert_eq!(files, 1);
}
