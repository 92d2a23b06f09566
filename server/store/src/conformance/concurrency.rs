//! Tests of concurrent calls: one commit wins for each base, and no reader sees half of a change.

use super::*;

pub(crate) async fn one_commit_wins_each_base(store: &dyn Store) {
    let t = tenant("acme");
    let mut base = None;
    for round in 0..25 {
        let attempt = |who: &str| {
            let summary = format!("round {round} of {who}");
            store.commit(&t, change("s", base, vec![tool("s", who, &summary)]))
        };
        let (a, b, c, d) = tokio::join!(attempt("a"), attempt("b"), attempt("c"), attempt("d"));
        let outcomes = [a, b, c, d];
        let won: Vec<_> = outcomes.iter().flatten().map(|committed| committed.revision).collect();
        assert_eq!(won, [round + 1], "{outcomes:?}");
        let lost = outcomes.iter().filter(|o| matches!(o, Err(StoreError::Conflict))).count();
        assert_eq!(lost, 3, "{outcomes:?}");
        base = Some(round + 1);
    }
    assert_eq!(store.revision(&t).await.expect("a read"), Some(25));
}

pub(crate) async fn readers_see_whole_changes(store: &dyn Store) {
    const GENERATIONS: u64 = 40;
    let t = tenant("acme");
    let generation = |base: Option<Revision>, n: u64| {
        let tools = (0..30).map(|i| tool("s", &format!("t{i}"), &format!("generation {n}")));
        let mut change = change("s", base, tools.collect());
        change.server.description = format!("generation {n}");
        change
    };
    commit(store, &t, generation(None, 1)).await;
    let write = async {
        for n in 2..=GENERATIONS {
            commit(store, &t, generation(Some(n - 1), n)).await;
        }
    };
    let read = async || {
        let mut last = 0;
        while last < GENERATIONS {
            let catalog = catalog(store, &t).await;
            assert!(catalog.revision >= last, "{} after {last}", catalog.revision);
            last = catalog.revision;
            let written = format!("generation {last}");
            assert_eq!(
                (&catalog.servers[0].record.description, catalog.tools.len()),
                (&written, 30)
            );
            assert!(catalog.tools.iter().all(|tool| tool.record.summary == written));
            let read = store.read_server(&t, &server_name("s")).await.expect("a read");
            let (server, tools) = read.expect("the server");
            let written = server.record.description;
            assert!(tools.len() == 30 && tools.iter().all(|tool| tool.record.summary == written));
        }
    };
    tokio::join!(write, read(), read(), read());
}
