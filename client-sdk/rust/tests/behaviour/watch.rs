//! The watch of a catalog: the revision that it resumes from, and the errors that end it.

use std::time::Duration;

use tokio::time::timeout;
use tonic::{Code, Status};
use toolgate_client::v1::{WatchCatalogRequest, WatchCatalogResponse};
use toolgate_client::{Client, ClientOptions, Error, ItemStream};

use crate::fake::{Fake, Script, Watched};
use crate::{connect, options};

fn ends(revisions: impl IntoIterator<Item = u64>, end: Status) -> Watched {
    Watched { revisions: revisions.into_iter().collect(), end: Some(end) }
}

fn stays(revisions: impl IntoIterator<Item = u64>) -> Watched {
    Watched { revisions: revisions.into_iter().collect(), end: None }
}

async fn revision(watch: &mut ItemStream<WatchCatalogResponse>) -> Result<u64, Error> {
    watch.next().await.expect("a watch has no end").map(|change| change.catalog_revision)
}

#[tokio::test]
async fn a_broken_watch_carries_on_from_the_last_revision() {
    let gone = || Status::unavailable("draining");
    let script =
        Script::watched([ends([], gone()), ends([3, 4], gone()), ends([], gone()), stays([9])]);
    let client = connect(&script, options()).await;
    let mut watch = client.watch_catalog(WatchCatalogRequest::default());
    for expected in [3, 4, 9] {
        assert_eq!(revision(&mut watch).await.expect("a change"), expected);
    }
    assert_eq!(script.watched_since(), [None, None, Some(4), Some(4)]);
    assert!(script.asked().iter().all(|call| call.tenant == "acme"));
    timeout(Duration::from_millis(20), revision(&mut watch)).await.expect_err("nothing changed");
}

#[tokio::test]
async fn other_errors_end_it() {
    let begun = WatchCatalogRequest { since_revision: Some(7), ..Default::default() };
    for code in [Code::PermissionDenied, Code::Unimplemented, Code::Internal] {
        let script = Script::watched([ends([8], Status::new(code, "no"))]);
        let client = connect(&script, options()).await;
        let mut watch = client.watch_catalog(begun.clone());
        assert_eq!(revision(&mut watch).await.expect("a change"), 8);
        let error = revision(&mut watch).await.expect_err("ended");
        assert_eq!(error.answer().map(|call| (call.rpc, call.code)), Some(("WatchCatalog", code)));
        assert!(watch.next().await.is_none());
        assert_eq!(script.watched_since(), [Some(7)]);
    }
}

#[tokio::test]
async fn a_lost_connection_is_made_again() {
    let script = Script::watched([stays([1])]);
    let crate::Connected { client, fake } = connect(&script, options()).await;
    let mut watch = client.watch_catalog(WatchCatalogRequest::default());
    assert_eq!(revision(&mut watch).await.expect("a change"), 1);
    let address = fake.endpoint.trim_start_matches("http://").to_owned();
    fake.kill();
    // The service is gone for a while.
    timeout(Duration::from_millis(50), revision(&mut watch)).await.expect_err("nobody is there");
    let again = Script::watched([stays([2])]);
    let _fake = Fake::serving_at(&again, &address);
    assert_eq!(revision(&mut watch).await.expect("a change"), 2);
    assert_eq!(again.watched_since(), [Some(1)]);
}

#[tokio::test]
async fn a_service_that_is_not_there_at_first_is_an_error() {
    let client = Client::lazy("127.0.0.1:1", options()).expect("an address");
    let mut watch = client.watch_catalog(WatchCatalogRequest::default());
    assert!(revision(&mut watch).await.expect_err("nobody is there").is_unreachable());
}

#[tokio::test]
async fn opening_has_a_deadline() {
    let script = Script::slow(Duration::from_secs(60));
    let deadline = Duration::from_millis(30);
    let client = connect(&script, ClientOptions { deadline, ..options() }).await;
    let mut watch = client.watch_catalog(WatchCatalogRequest::default());
    let error = revision(&mut watch).await.expect_err("too slow");
    assert!(matches!(error, Error::Deadline { rpc: "WatchCatalog", .. }), "{error:?}");
}
