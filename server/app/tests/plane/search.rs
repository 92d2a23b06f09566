//! Tests of SearchTools: every form of the grammar, the published weights and the text of an empty answer. Tools that
//! the state hides are not found.

use toolgate_core::deferral::Policy;
use toolgate_core::mcp_server::TransportHint;
use toolgate_core::state::AgentState;
use toolgate_routing::catalog::registration::Registration;
use toolgate_routing::gate::verdict::RefusalCode;
use toolgate_routing::router::query::Detail;
use toolgate_routing::router::route::Degraded;
use toolgate_routing::router::search::{Form, SearchQuery};

use crate::support::{
    Mode, ToolText, World, ask, call, found, granted, look_for, model_names, server, tool,
};

const SEND: &str = "mcp__slack__send_message";
const CHANNELS: &str = "mcp__slack__list_channels";
const ISSUE: &str = "mcp__github__create_issue";
const EMAIL: &str = "mcp__email__send_email";

/// Creates a world with the four tools of the published example.
async fn world() -> World {
    let world = World::new().await;
    let slack =
        vec![tool("send_message", "Posts a text."), tool("list_channels", "Shows the rooms.")];
    world.register("acme", server("slack", slack)).await;
    world.register("acme", server("github", vec![tool("create_issue", "Opens a ticket.")])).await;
    world.register("acme", server("email", vec![tool("send_email", "Mails somebody.")])).await;
    world
}

/// Checks the names and scores that a query finds.
async fn check(world: &World, query: &str, expected: &[(&str, f32)]) {
    let answer = world.search("acme", look_for(query)).await;
    let scores = answer.tools.iter().map(|active| active.chosen.score);
    let got: Vec<_> = found(&answer).into_iter().zip(scores).collect();
    let expected: Vec<_> = expected.iter().map(|(name, s)| ((*name).to_owned(), *s)).collect();
    assert_eq!(got, expected, "{query}");
}

#[tokio::test]
async fn the_published_example_scores_as_published() {
    let world = world().await;
    check(&world, "slack send", &[(SEND, 24.0), (CHANNELS, 12.0), (EMAIL, 12.0)]).await;
    let answer = world.search("acme", look_for("slack send")).await;
    assert_eq!((answer.form, answer.searched), (Form::Keywords, 4));
    assert_eq!(world.encoder.take_count(), 4, "only summaries were embedded, no query");
}

#[tokio::test]
async fn deferred_tools_are_those_that_only_a_search_finds() {
    let world = world().await;
    let admin = vec![tool("drop", "Drops a table.").scope("admin")];
    world.register("acme", server("db", admin)).await;
    world.register("acme", server("base", vec![tool("wait", "Waits.").always()])).await;
    let deferred = async |previous: &str, state: AgentState| {
        let query = SearchQuery { previous: previous.to_owned(), state, ..look_for("slack send") };
        let answer = world.search("acme", query).await;
        (answer.searched, answer.deferred)
    };
    let nobody = AgentState::default;
    assert_eq!(deferred("", nobody()).await, (5, 4), "one is always loaded, one is hidden");
    assert_eq!(deferred("", granted(&["admin"])).await, (6, 5));
    let loaded = world.search("acme", look_for("select:send_message,wait")).await;
    assert_eq!(loaded.deferred, 4, "it is the search that found them");
    assert_eq!(deferred(&loaded.handle, nobody()).await, (5, 3), "one of the set is loaded anyway");
    world.deferral.replace(Policy { kill_switch: true, ..Policy::default() });
    assert_eq!(deferred("", nobody()).await, (5, 0), "nothing is deferred");
}

#[tokio::test]
async fn each_weight_counts() {
    let world = World::new().await;
    let hinted = |name: &str, description: &str, hint: &str| {
        let mut tool = tool(name, description);
        tool.settings.search_hint = hint.to_owned();
        tool
    };
    let tools = vec![
        hinted("alpha", "nothing to see", ""),
        hinted("beta", "the word gamma stands here", ""),
        hinted("delta", "nothing", "say Gamma for it"),
        hinted("xgammax", "nothing", ""),
        hinted("gamma", "gamma it is", "gamma"),
    ];
    world.register("acme", server("s", tools)).await;
    let expected = [
        ("mcp__s__gamma", 18.0),
        ("mcp__s__xgammax", 6.0),
        ("mcp__s__delta", 4.0),
        ("mcp__s__beta", 2.0),
    ];
    check(&world, "gamma", &expected).await;
    // The text is in the whole name, but not in any part of it.
    check(&world, "s__alp", &[("mcp__s__alpha", 3.0)]).await;
    check(&world, "GAM", &[("mcp__s__gamma", 6.0), ("mcp__s__xgammax", 6.0)]).await;
}

#[tokio::test]
async fn of_equals_the_shortest_name_goes_first() {
    let world = World::new().await;
    let tools = vec![tool("create_remote_issue_link", "x"), tool("create_issue", "x")];
    world.register("acme", server("s", tools)).await;
    let expected = [("mcp__s__create_issue", 24.0), ("mcp__s__create_remote_issue_link", 24.0)];
    check(&world, "create issue", &expected).await;
}

#[tokio::test]
async fn the_agents_own_tools_weigh_less() {
    let world = World::new().await;
    world.register("acme", server("s", vec![tool("read_page", "x")])).await;
    let own = built_in("own", vec![tool("read_file", "x")]);
    world.register("acme", own).await;
    let expected = [("mcp__s__read_page", 12.0), ("mcp__own__read_file", 10.0)];
    check(&world, "read", &expected).await;
    let expected = [("mcp__s__read_page", 6.0), ("mcp__own__read_file", 5.0)];
    check(&world, "rea", &expected).await;
}

fn built_in(name: &str, tools: Vec<ToolText>) -> Registration {
    let mut registration = server(name, tools);
    registration.server.transport_hint = TransportHint::BuiltIn;
    registration
}

#[tokio::test]
async fn required_terms_filter_before_scoring() {
    let world = world().await;
    check(&world, "+slack send", &[(SEND, 24.0), (CHANNELS, 12.0)]).await;
    check(&world, "send +message +slack", &[(SEND, 36.0)]).await;
    let answer = world.search("acme", look_for("+slack +ticket send")).await;
    assert!(answer.tools.is_empty());
    assert_eq!(answer.lacking_required, 4, "two of slack, one ticket, one mail");
    assert!(
        answer.message.contains("every one of +slack +ticket; 4 match a term"),
        "{}",
        answer.message
    );
    assert_eq!(
        world.encoder.take_count(),
        4,
        "a required term is never given up for a near meaning"
    );
}

#[tokio::test]
async fn prefixes_and_servers_list_without_scoring() {
    let world = world().await;
    for query in ["mcp__slack", "MCP__slack__", "slack", "Slack"] {
        check(&world, query, &[(CHANNELS, 0.0), (SEND, 0.0)]).await;
        let answer = world.search("acme", look_for(query)).await;
        assert_eq!(answer.form, Form::Prefix, "{query}");
    }
    check(&world, "mcp__slack__s", &[(SEND, 0.0)]).await;
    let one = SearchQuery { max_results: 1, ..look_for("slack") };
    assert_eq!(found(&world.search("acme", one).await), [CHANNELS]);
    let answer = world.search("acme", look_for("mcp__nowhere__at_all")).await;
    assert!(answer.tools.is_empty() && !answer.message.is_empty());
}

#[tokio::test]
async fn selecting_takes_names_as_models_write_them() {
    let world = world().await;
    let query = format!("select:{ISSUE}, slack/send_message,functions.{EMAIL},send_message");
    let answer = world.search("acme", SearchQuery { max_results: 1, ..look_for(&query) }).await;
    assert_eq!(found(&answer), [ISSUE, SEND, EMAIL], "whatever max_results says");
    assert_eq!((answer.form, answer.message.as_str()), (Form::Select, ""));
    // A name alone selects the tool too.
    for query in [ISSUE, "create_issue", "github/create_issue"] {
        let answer = world.search("acme", look_for(query)).await;
        assert_eq!((found(&answer), answer.form), (vec![ISSUE.to_owned()], Form::Select));
    }
}

#[tokio::test]
async fn selecting_what_is_loaded_succeeds_quietly() {
    let world = World::new().await;
    world.register("acme", server("s", vec![tool("a", "a"), tool("b", "b").always()])).await;
    let routed = world.route("acme", ask("a")).await;
    let again = SearchQuery { previous: routed.handle, ..look_for("select:mcp__s__b,mcp__s__a") };
    let answer = world.search("acme", again).await;
    assert_eq!(found(&answer), ["mcp__s__b", "mcp__s__a"]);
    assert!(answer.tools.iter().all(|active| !active.chosen.newly_promoted));
}

#[tokio::test]
async fn unknown_names_are_told_with_the_nearest() {
    let world = world().await;
    let answer = world.search("acme", look_for("select:mcp__slack__send_mesage,zzz")).await;
    assert!(answer.tools.is_empty());
    assert!(answer.refusals.iter().all(|r| r.code == RefusalCode::UnknownTool));
    assert_eq!(answer.refusals.len(), 2);
    assert!(answer.message.contains(&format!("Did you mean {SEND}?")), "{}", answer.message);
    assert!(answer.message.contains("There is no tool \"zzz\"."), "{}", answer.message);
}

#[tokio::test]
async fn a_sentence_goes_to_the_router() {
    let world = world().await;
    let answer = world.search("acme", look_for("please posts me a text")).await;
    assert_eq!((answer.form, found(&answer)[0].as_str()), (Form::Natural, SEND));
    assert!(answer.tools[0].chosen.overlap >= 0.14);
    // Keywords without a match are searched by meaning, and nonsense has none.
    let answer = world.search("acme", look_for("qqq zzz")).await;
    assert_eq!((answer.form, found(&answer)), (Form::Natural, vec![]));
    assert!(answer.message.contains("No tool fits"), "{}", answer.message);
}

#[tokio::test]
async fn without_the_encoder_words_decide() {
    let world = world().await;
    world.encoder.set(Mode::Fails);
    let answer = world.search("acme", look_for("who mails somebody for me")).await;
    // The other sends messages, a word that the shipped synonyms have for mail.
    assert_eq!(found(&answer), [EMAIL, SEND]);
    assert_eq!(answer.degraded, [Degraded::LexicalOnly]);
    let answer = world.search("acme", look_for("what is it that you do")).await;
    assert!(answer.tools.is_empty(), "no word in common");
}

#[tokio::test]
async fn what_is_found_may_be_called_unless_only_named() {
    let world = world().await;
    for (detail, callable) in [
        (Detail::Names, false),
        (Detail::Signatures, true),
        (Detail::References, true),
        (Detail::Schemas, true),
    ] {
        let query = SearchQuery { detail, ..look_for("select:create_issue") };
        let answer = world.search("acme", query).await;
        let state = AgentState::default();
        let verdict = world.gate_one("acme", &answer.handle, call(ISSUE), state).await;
        assert_eq!(verdict.is_ok(), callable, "{detail:?}");
        assert_eq!(answer.tools[0].chosen.newly_promoted, callable, "{detail:?}");
    }
}

#[tokio::test]
async fn discoveries_add_up_and_stay() {
    let world = world().await;
    let first = world.search("acme", look_for("create_issue")).await;
    let second = SearchQuery { previous: first.handle, ..look_for("send_email") };
    let second = world.search("acme", second).await;
    let turn = ToolTurn { handle: &second.handle };
    assert_eq!(turn.kept(&world).await, [ISSUE, EMAIL]);
}

struct ToolTurn<'a> {
    handle: &'a str,
}

impl ToolTurn<'_> {
    /// Returns the tools that the next Route keeps, in their order.
    async fn kept(&self, world: &World) -> Vec<String> {
        let mut query = ask("qqq");
        query.previous = self.handle.to_owned();
        query.options.threshold = 1.0;
        model_names(&world.route("acme", query).await)
    }
}

#[tokio::test]
async fn locked_tools_are_explained_and_hidden_ones_are_not_there() {
    let world = World::new().await;
    let tools = vec![
        tool("open", "refund invoice"),
        tool("later", "refund voucher").after("approved"),
        tool("secret", "refund vault").scope("admin"),
    ];
    world.register("acme", server("s", tools)).await;
    let answer = world.search("acme", look_for("+voucher")).await;
    assert!(answer.tools.is_empty());
    assert_eq!(answer.refusals[0].unlock, ["milestone_reached(\"approved\")"]);
    assert!(answer.message.contains("mcp__s__later may not be used yet"), "{}", answer.message);
    let texts = |answer: &toolgate_routing::router::search::SearchAnswer| {
        (found(answer), answer.message.clone(), answer.refusals.len(), answer.searched)
    };
    // A hidden tool and one that never existed give the same answers, except for the name in the query.
    for (hidden, absent) in [
        ("select:mcp__s__secret", "select:mcp__s__absent"),
        ("select:s/secret", "select:s/absent"),
        ("mcp__s__secret", "mcp__s__absent"),
        ("+secret", "+absent"),
        ("please open the secret vault", "please open the absent xyzzy"),
    ] {
        let one = texts(&world.search("acme", look_for(hidden)).await);
        let other = texts(&world.search("acme", look_for(absent)).await);
        let renamed = (other.0, other.1.replace("absent", "secret"), other.2, other.3);
        assert_eq!(one, renamed, "{hidden}");
    }
    let admin = SearchQuery { state: granted(&["admin"]), ..look_for("+vault") };
    assert_eq!(found(&world.search("acme", admin).await), ["mcp__s__secret"]);
}

#[tokio::test]
async fn another_tenants_tools_are_not_found() {
    let world = world().await;
    world.register("beta", server("s", vec![tool("own", "x")])).await;
    for query in ["select:create_issue", "slack", "mcp__slack", "+slack", "send message"] {
        let answer = world.search("beta", look_for(query)).await;
        assert!(answer.tools.is_empty() && answer.searched == 1, "{query}");
    }
}

#[tokio::test]
async fn a_list_by_name_says_that_it_goes_on() {
    let world = World::new().await;
    let tools = (0..7).map(|n| tool(&format!("log_{n}"), "Shows commits.")).collect();
    world.register("acme", server("git", tools)).await;
    for query in ["git", "mcp__git"] {
        let answer = world.search("acme", look_for(query)).await;
        assert_eq!((answer.form, answer.tools.len()), (Form::Prefix, 5));
        assert_eq!(answer.message, "5 of 7 tools by name: ask for 7 results to see all of them.");
        let whole = SearchQuery { max_results: 7, ..look_for(query) };
        let answer = world.search("acme", whole).await;
        assert_eq!((answer.tools.len(), &*answer.message), (7, ""));
    }
}

#[tokio::test]
async fn what_a_precondition_keeps_back_is_said_beside_what_was_found() {
    let world = World::new().await;
    let reset = |n: usize| tool(&format!("git_reset_{n}"), "Undoes commits.").after("planned");
    let mut tools: Vec<_> = (0..7).map(reset).collect();
    tools.push(tool("git_log", "Shows commits."));
    world.register("acme", server("git", tools)).await;
    let locked = "mcp__git__git_reset_0, mcp__git__git_reset_1, mcp__git__git_reset_2, \
        mcp__git__git_reset_3, mcp__git__git_reset_4 and 2 more may not be used yet: they need \
        milestone_reached(\"planned\").";
    for query in ["git", "mcp__git", "commits git"] {
        let answer = world.search("acme", look_for(query)).await;
        assert_eq!(
            (found(&answer), &*answer.message),
            (vec!["mcp__git__git_log".to_owned()], locked)
        );
        assert!(answer.refusals.iter().all(|r| r.code == RefusalCode::PreconditionUnmet));
        assert_eq!(answer.refusals.len(), 5);
    }
    let whole = world.search("acme", look_for("mcp__git__git_reset")).await;
    assert_eq!((found(&whole), &*whole.message), (vec![], locked), "not said to be unknown");
}
