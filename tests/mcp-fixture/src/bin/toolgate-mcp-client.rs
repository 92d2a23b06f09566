//! Client for the client scenarios of the official conformance suite: it asks a server through `toolgate_upstream`, as the
//! gateway does. The suite names the scenario in `MCP_CONFORMANCE_SCENARIO` and gives the server's URL as the argument.
//! Scenarios of OAuth are played by the client that logs in.

use std::error::Error;
use std::time::Duration;

use serde_json::{Map, Value, json};
use tokio::process::Command;
use tokio::sync::mpsc;
use tokio::time::{Instant, timeout};
use toolgate_upstream::{Asker, Entry, Fleet, Limits, Question, Request, ServerState, Upstream};

const SERVER: &str = "scenario";
const CLIENT_THAT_LOGS_IN: &str = "toolgate-mcp-login-client";

/// Time for the server to be ready, and for each request.
const PATIENCE: Duration = Duration::from_secs(20);

/// Rounds of questions that a server may ask before it answers.
const ROUNDS_MAX: usize = 4;

type Outcome<T> = Result<T, Box<dyn Error>>;

struct Client {
    fleet: Fleet,
}

#[tokio::main]
async fn main() -> Outcome<()> {
    let url = std::env::args().nth(1).ok_or("the argument is missing: the server's URL")?;
    let scenario = std::env::var("MCP_CONFORMANCE_SCENARIO")?;
    if scenario.starts_with("auth/") {
        let program = std::env::current_exe()?.with_file_name(CLIENT_THAT_LOGS_IN);
        let status = Command::new(program).arg(&url).kill_on_drop(true).status().await?;
        return if status.success() { Ok(()) } else { Err(format!("it ended: {status}").into()) };
    }
    let entry = Entry {
        name: SERVER.to_owned(),
        upstream: Upstream::parse(&url)?,
        limits: Limits { own_connections: 1, ..Limits::default() },
        waits_for: None,
    };
    let client = Client { fleet: Fleet::start(vec![entry]) };
    let played = client.play(&scenario).await;
    client.fleet.close().await;
    played
}

impl Client {
    async fn play(&self, scenario: &str) -> Outcome<()> {
        self.ready().await?;
        match scenario {
            // The handshake, and the list that follows it where there are tools.
            "initialize" | "json-schema-ref-no-deref" => Ok(()),
            "request-metadata" => self.ask("tools/list", json!({})).await.map(|_tools| ()),
            "tools_call" => self.call("add_numbers", json!({"a": 2, "b": 3})).await,
            "elicitation-sep1034-client-defaults" => {
                self.call_with_defaults("test_client_elicitation_defaults").await
            }
            "sse-retry" => self.call("test_reconnection", json!({})).await,
            "http-standard-headers" => self.use_each_feature().await,
            "http-custom-headers" => self.call_as_told().await,
            "http-invalid-tool-headers" => self.call_each_tool().await,
            "json-schema-2020-12-preservation" => self.send_schema_back().await,
            "sep-2322-client-request-state" => {
                for tool in [
                    "test_mrtr_echo_state",
                    "test_mrtr_unrelated",
                    "test_mrtr_no_state",
                    "test_mrtr_no_result_type",
                ] {
                    self.call(tool, json!({})).await?;
                }
                Ok(())
            }
            other => Err(format!("the scenario {other} is not played").into()),
        }
    }

    /// Waits until the server has shaken hands and listed its tools.
    async fn ready(&self) -> Outcome<()> {
        let mut changes = self.fleet.changes();
        let ready = async {
            loop {
                changes.borrow_and_update();
                let status = self.fleet.status();
                let status = status.first().ok_or("the server is gone")?;
                match status.state {
                    ServerState::Ready => return Ok(()),
                    ServerState::Starting => changes.changed().await?,
                    state => return Err(format!("{state:?}: {:?}", status.problem).into()),
                }
            }
        };
        timeout(PATIENCE, ready).await?
    }

    async fn ask(&self, method: &str, params: Value) -> Outcome<Value> {
        let Value::Object(params) = params else { return Err("parameters are an object".into()) };
        let request = Request {
            method: method.to_owned(),
            params,
            principal: String::new(),
            progress: None,
            asker: None,
            requester: None,
            sent: None,
            process: None,
        };
        let result = self.fleet.request(SERVER, request, Instant::now() + PATIENCE).await?;
        Ok(serde_json::from_str(result.get())?)
    }

    /// Calls a tool, and says yes to what its server asks.
    async fn call(&self, tool: &str, arguments: Value) -> Outcome<()> {
        let mut params = json!({"name": tool, "arguments": arguments});
        for _ in 0..ROUNDS_MAX {
            let result = self.ask("tools/call", params.clone()).await?;
            if result["resultType"] != "input_required" {
                return Ok(());
            }
            let asked = result["inputRequests"].as_object().cloned().unwrap_or_default();
            let yes = json!({"action": "accept", "content": {"confirmed": true}});
            let answers: Map<String, Value> =
                asked.into_iter().map(|(key, _question)| (key, yes.clone())).collect();
            params["inputResponses"] = Value::Object(answers);
            if let Some(state) = result.get("requestState") {
                params["requestState"] = state.clone();
            }
        }
        Err(format!("{tool} asked {ROUNDS_MAX} times").into())
    }

    /// Calls a tool as a host that fills its questions' forms in with their defaults.
    async fn call_with_defaults(&self, tool: &str) -> Outcome<()> {
        let (questions, mut asked) = mpsc::channel(1);
        let capabilities = json!({"elicitation": {"form": {"applyDefaults": true}}});
        let asker = Asker { host: "host".to_owned(), capabilities, questions };
        let mut params = Map::new();
        params.insert("name".to_owned(), Value::from(tool));
        params.insert("arguments".to_owned(), Value::Object(Map::new()));
        let request = Request {
            method: "tools/call".to_owned(),
            params,
            principal: String::new(),
            progress: None,
            asker: Some(asker),
            requester: None,
            sent: None,
            process: None,
        };
        let mut call = Box::pin(self.fleet.request(SERVER, request, Instant::now() + PATIENCE));
        loop {
            tokio::select! {
                answer = &mut call => return Ok(answer.map(|_result| ())?),
                Some(question) = asked.recv() => accept_defaults(question),
            }
        }
    }

    async fn use_each_feature(&self) -> Outcome<()> {
        self.call_each_tool().await?;
        for (list, read, key) in
            [("resources", "resources/read", "uri"), ("prompts", "prompts/get", "name")]
        {
            let listed = self.ask(&format!("{list}/list"), json!({})).await?;
            for item in listed[list].as_array().into_iter().flatten() {
                self.ask(read, json!({key: item[key]})).await?;
            }
        }
        Ok(())
    }

    /// Makes the calls of the scenario's context.
    async fn call_as_told(&self) -> Outcome<()> {
        let context: Value = serde_json::from_str(&std::env::var("MCP_CONFORMANCE_CONTEXT")?)?;
        for call in context["toolCalls"].as_array().into_iter().flatten() {
            let name = call["name"].as_str().unwrap_or_default();
            self.call(name, call["arguments"].clone()).await?;
        }
        Ok(())
    }

    async fn call_each_tool(&self) -> Outcome<()> {
        for tool in self.tools()? {
            let name = tool["name"].as_str().unwrap_or_default();
            self.call(name, json!({"region": "eu"})).await?;
        }
        Ok(())
    }

    async fn send_schema_back(&self) -> Outcome<()> {
        let tools = self.tools()?;
        let focal = tools.iter().find(|tool| tool["name"] == "json_schema_2020_12_tool");
        let schema = &focal.ok_or("the tool with the schema is missing")?["inputSchema"];
        self.call("json_schema_echo", json!({"schema": schema})).await
    }

    fn tools(&self) -> Outcome<Vec<Value>> {
        let listing = self.fleet.listing(SERVER).ok_or("no tools were listed")?;
        let tools = listing.tools.iter().map(|tool| serde_json::from_str(tool.get()));
        Ok(tools.collect::<Result<_, _>>()?)
    }
}

/// Answers a question with the defaults of its form.
fn accept_defaults(question: Question) {
    let fields = question.params["requestedSchema"]["properties"].as_object();
    let defaults = fields.into_iter().flatten().filter_map(|(name, field)| {
        let default = field.get("default")?;
        Some((name.clone(), default.clone()))
    });
    let content: Map<String, Value> = defaults.collect();
    // Without the call nobody waits for it.
    let _gone = question.answer.send(Ok(json!({"action": "accept", "content": content})));
}
