//! Tests of keys in files: followed, kept while a new file is invalid, read early on demand.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;

use super::*;

const DAY: Duration = Duration::from_secs(86_400);

fn set(keys: u8) -> String {
    let key = |byte| {
        let x = URL_SAFE_NO_PAD.encode([byte; 32]);
        format!(r#"{{"kty": "OKP", "crv": "Ed25519", "x": "{x}"}}"#)
    };
    format!(r#"{{"keys": [{}]}}"#, (0..keys).map(key).collect::<Vec<_>>().join(","))
}

#[tokio::test]
async fn a_file_is_followed_and_a_mistake_changes_nothing() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jwks.json");
    let begin = || Source::begin(JwksOrigin::File(path.clone()), Duration::from_secs(300), DAY);
    assert!(begin().is_err(), "a file that is not there is a mistake");
    fs::write(&path, set(1)).expect("written");
    let (source, follower) = begin().expect("a source");
    let over = CancellationToken::new();
    let (hangups, hung_up) = watch::channel(());
    let following = tokio::spawn(follower.run(hung_up, over.clone()));
    let mut keys = source.keys.clone();
    let now = || (source.keys().set.len(), source.keys().generation);
    assert_eq!(now(), (1, 0));
    for (text, want) in
        [(set(2), (2, 1)), ("no JSON".into(), (2, 1)), (set(2), (2, 1)), (set(3), (3, 2))]
    {
        fs::write(&path, &text).expect("written");
        keys.mark_unchanged();
        hangups.send_replace(());
        keys.changed().await.expect("it is followed");
        assert_eq!(now(), want, "{text}");
    }
    over.cancel();
    following.await.expect("it ends");
}

#[tokio::test]
async fn who_needs_newer_keys_has_them_asked_for_and_not_too_often() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("jwks.json");
    fs::write(&path, set(1)).expect("written");
    let begun = Source::begin(JwksOrigin::File(path.clone()), Duration::from_secs(300), DAY);
    let (source, follower) = begun.expect("a source");
    let (_hangups, hung_up) = watch::channel(());
    tokio::spawn(follower.run(hung_up, CancellationToken::new()));
    let ask = || source.ask_again(Duration::from_secs(30));
    assert!(ask().await.is_none(), "it was read a moment ago");
    sleep(FILE_AGAIN_MIN).await;
    fs::write(&path, set(2)).expect("written");
    let (one, other) = tokio::join!(ask(), ask());
    assert_eq!(one.expect("newer keys").set.len(), 2);
    assert_eq!(other.expect("the same").set.len(), 2);
    assert!(ask().await.is_none());
}

/// Creates a source of two keys from a file, and its follower.
fn forsaken(folder: &Path, max_age: Duration) -> (Source, Follower) {
    let path = folder.join("jwks.json");
    fs::write(&path, set(2)).expect("written");
    Source::begin(JwksOrigin::File(path), DAY, max_age).expect("a source")
}

#[test]
fn a_set_without_keys_is_an_answer() {
    let folder = tempfile::tempdir().expect("a folder");
    let (source, mut follower) = forsaken(folder.path(), DAY);
    let now = || (source.keys().set.len(), source.keys().generation);
    follower.take(Ok(set(0).into()));
    assert_eq!(now(), (0, 1), "who took its keys back means it");
    follower.take(Ok(set(2).into()));
    assert_eq!(now(), (2, 2));
}

#[test]
fn keys_that_can_t_be_had_again_end_after_a_while() {
    let folder = tempfile::tempdir().expect("a folder");
    let gone = || Err("gone".to_owned());
    let (source, mut follower) = forsaken(folder.path(), DAY);
    follower.take(gone());
    assert_eq!(source.keys().set.len(), 2, "for a day they stay");
    let (source, mut follower) = forsaken(folder.path(), Duration::ZERO);
    let now = || (source.keys().set.len(), source.keys().generation);
    follower.take(gone());
    follower.take(gone());
    assert_eq!(now(), (0, 1));
    follower.take(Ok(set(2).into()));
    assert_eq!(now(), (2, 2), "the same keys are good again");
}

#[test]
fn authorities_must_be_certificates() {
    assert!(JwksOrigin::url("https://x/", None).is_ok());
    assert!(JwksOrigin::url("https://x/", Some(b"")).is_err());
    assert!(JwksOrigin::url("https://x/", Some(b"-----BEGIN CERTIFICATE-----\n")).is_err());
}

#[test]
fn pauses_differ_a_little() {
    let pauses: Vec<_> = (0..100).map(|_| jittered(Duration::from_secs(100))).collect();
    assert!(pauses.iter().all(|pause| (90.0..=110.0).contains(&pause.as_secs_f64())));
    assert!(pauses.iter().any(|pause| pause != &pauses[0]));
}
