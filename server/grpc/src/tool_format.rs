//! Tools of an answer in the format of a provider's API.

use prost::Message as _;
use serde_json::Value;
use toolgate_core::error::Error;
use toolgate_llm::render::{
    AnthropicOptions, Loss, RenderError, Rendered, Tool, anthropic, gemini, mcp, openai_chat,
    openai_responses,
};
use toolgate_proto::v1::{
    ActiveTool, Detail, RenderLoss, RenderOptions, RenderedTools, RouteResponse,
    SearchToolsResponse, ToolFormat,
};

/// Bytes of a field's tag and length, at most.
const FIELD: usize = 8;

/// Returns the format that a request asks for; `None` for no rendering.
///
/// # Errors
/// [`Error::InvalidFields`] for an unknown format, and for a level of detail without definitions.
pub(super) fn asked(
    wire: Option<&RenderOptions>,
    detail: i32,
) -> Result<Option<ToolFormat>, Error> {
    let Some(options) = wire else { return Ok(None) };
    let format = ToolFormat::try_from(options.format).unwrap_or_default();
    if format == ToolFormat::Unspecified {
        return Err(Error::field("render.format", "must be a value of ToolFormat"));
    }
    let has_definitions = [Detail::Unspecified, Detail::Schemas].map(i32::from).contains(&detail);
    if !has_definitions {
        return Err(Error::field("render", "needs full definitions: DETAIL_SCHEMAS"));
    }
    Ok(Some(format))
}

/// Renders the active set of an answer, if a format was asked for, in the place of its definitions.
pub(super) fn route(
    mut answer: RouteResponse,
    format: Option<ToolFormat>,
    message_max: usize,
) -> RouteResponse {
    if let Some(format) = format {
        let rendering = Rendering::of(format, &mut answer.active_tools);
        let room = message_max.saturating_sub(answer.encoded_len() + FIELD);
        answer.rendered = Some(rendering.within(room));
    }
    answer
}

/// Renders the tools of a search, if a format was asked for, in the place of their definitions.
pub(super) fn search(
    mut answer: SearchToolsResponse,
    format: Option<ToolFormat>,
    message_max: usize,
) -> SearchToolsResponse {
    if let Some(format) = format {
        let rendering = Rendering::of(format, &mut answer.tools);
        let room = message_max.saturating_sub(answer.encoded_len() + FIELD);
        answer.rendered = Some(rendering.within(room));
    }
    answer
}

/// Tools in a provider's format, before it is known how much room an answer has for them.
struct Rendering {
    definitions: Vec<Value>,
    losses: Vec<RenderLoss>,
}

impl Rendering {
    /// Renders the tools, and removes the definitions from them.
    fn of(format: ToolFormat, tools: &mut [ActiveTool]) -> Self {
        let Rendered { tools: definitions, losses } = render_all(format, tools);
        for tool in tools {
            tool.description.clear();
            tool.input_schema_json.clear();
            tool.output_schema_json.clear();
            tool.annotations_json.clear();
        }
        Self { definitions, losses: losses.into_iter().map(loss_of).collect() }
    }

    /// Returns the message, of at most `room` bytes. Where it would have more, the last tools are left out, and the last
    /// losses after them.
    fn within(self, room: usize) -> RenderedTools {
        let Self { definitions, mut losses } = self;
        let mut texts: Vec<String> = definitions.iter().map(ToString::to_string).collect();
        let loss_size = |loss: &RenderLoss| loss.encoded_len() + FIELD;
        let mut size = FIELD + texts.iter().map(|text| text.len() + 1).sum::<usize>();
        size += losses.iter().map(loss_size).sum::<usize>();
        while size > room
            && let Some(text) = texts.pop()
        {
            let name = definitions.get(texts.len()).and_then(name_of).unwrap_or_default();
            let loss = no_room(name);
            size += loss_size(&loss);
            size -= text.len() + 1;
            losses.push(loss);
        }
        while size > room
            && let Some(loss) = losses.pop()
        {
            size -= loss_size(&loss);
        }
        RenderedTools { tools_json: format!("[{}]", texts.join(",")), losses }
    }
}

/// Renders the tools that can be rendered. A schema that can't be parsed, such as one with a number beyond an `f64`, is
/// a loss of its tool and none of the others.
fn render_all(format: ToolFormat, tools: &[ActiveTool]) -> Rendered {
    let mut tools: Vec<Tool<'_>> = tools.iter().map(tool_of).collect();
    let mut unreadable = Vec::new();
    loop {
        match render(format, &tools) {
            Ok(mut rendered) => {
                rendered.losses.append(&mut unreadable);
                return rendered;
            }
            Err(error) => {
                let name = match &error {
                    RenderError::NoSchema { tool } | RenderError::NotJson { tool, .. } => tool,
                };
                tools.retain(|tool| tool.name != name);
                unreadable.push(Loss {
                    tool: name.clone(),
                    pointer: String::new(),
                    keyword: String::new(),
                    note: format!("{error}: the tool is left out"),
                });
            }
        }
    }
}

fn render(format: ToolFormat, tools: &[Tool<'_>]) -> Result<Rendered, RenderError> {
    match format {
        ToolFormat::OpenaiChat => openai_chat(tools),
        ToolFormat::OpenaiResponses => openai_responses(tools),
        ToolFormat::Anthropic => anthropic(tools, &AnthropicOptions::default()),
        ToolFormat::Gemini => gemini(tools),
        ToolFormat::Mcp | ToolFormat::Unspecified => mcp(tools),
    }
}

fn tool_of(tool: &ActiveTool) -> Tool<'_> {
    Tool {
        name: &tool.model_name,
        description: &tool.description,
        input_schema_json: &tool.input_schema_json,
        output_schema_json: &tool.output_schema_json,
        annotations_json: &tool.annotations_json,
        signature: &tool.signature,
    }
}

/// Returns the name in a definition, which Chat Completions has within `function`.
fn name_of(definition: &Value) -> Option<&str> {
    let within = definition.get("function").unwrap_or(definition);
    within.get("name")?.as_str()
}

fn loss_of(loss: Loss) -> RenderLoss {
    let Loss { tool, pointer, keyword, note } = loss;
    RenderLoss { model_name: tool, pointer, keyword, message: note }
}

/// Returns the loss of a tool for which the answer had no room.
fn no_room(name: &str) -> RenderLoss {
    RenderLoss {
        model_name: name.to_owned(),
        keyword: "tools".to_owned(),
        message: "the answer has no room for it: the tool is left out".to_owned(),
        ..Default::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: &str) -> ActiveTool {
        ActiveTool {
            model_name: name.to_owned(),
            description: format!("Does {name}."),
            input_schema_json: schema.to_owned(),
            ..Default::default()
        }
    }

    fn names(rendered: &RenderedTools) -> Vec<String> {
        let tools: Vec<Value> = serde_json::from_str(&rendered.tools_json).expect("a JSON list");
        tools.iter().filter_map(name_of).map(str::to_owned).collect()
    }

    fn all_formats() -> impl Iterator<Item = ToolFormat> {
        (1..).map_while(|number| ToolFormat::try_from(number).ok())
    }

    fn rendered(format: ToolFormat, tools: &mut [ActiveTool], room: usize) -> RenderedTools {
        Rendering::of(format, tools).within(room)
    }

    #[test]
    fn what_is_asked_for_is_checked() {
        let render = |format| Some(RenderOptions { format });
        let detail = |detail: Detail| i32::from(detail);
        assert!(matches!(asked(None, detail(Detail::Names)), Ok(None)));
        let chat = render(ToolFormat::OpenaiChat.into());
        for full in [Detail::Unspecified, Detail::Schemas] {
            let format = asked(chat.as_ref(), detail(full)).expect("it has definitions");
            assert_eq!(format, Some(ToolFormat::OpenaiChat));
        }
        for brief in [Detail::Names, Detail::Signatures, Detail::References] {
            assert!(asked(chat.as_ref(), detail(brief)).is_err());
        }
        for unknown in [0, 99] {
            assert!(asked(render(unknown).as_ref(), detail(Detail::Schemas)).is_err());
        }
    }

    #[test]
    fn definitions_are_in_the_rendered_tools_and_nowhere_else() {
        for format in all_formats() {
            let mut tools = [tool("a", r#"{"type":"object"}"#), tool("b", r#"{"type":"object"}"#)];
            let rendered = rendered(format, &mut tools, 1 << 20);
            assert_eq!(names(&rendered), ["a", "b"], "{format:?}");
            assert!(rendered.tools_json.contains("Does a."), "{format:?}");
            assert!(tools.iter().all(|tool| tool.description.is_empty()), "{format:?}");
            assert!(tools.iter().all(|tool| tool.input_schema_json.is_empty()), "{format:?}");
        }
    }

    #[test]
    fn a_schema_that_cant_be_read_costs_its_tool_alone() {
        for format in all_formats() {
            let mut tools = [tool("a", r#"{"minimum":1e999}"#), tool("b", r#"{"type":"object"}"#)];
            let rendered = rendered(format, &mut tools, 1 << 20);
            assert_eq!(names(&rendered), ["b"], "{format:?}");
            let lost: Vec<_> =
                rendered.losses.iter().map(|loss| loss.model_name.as_str()).collect();
            assert_eq!(lost, ["a"], "{format:?}");
        }
    }

    #[test]
    fn a_rendered_answer_is_no_larger_than_a_message_may_be() {
        let active_tools: Vec<_> = (0..40).map(|n| tool(&format!("t{n}"), "{}")).collect();
        let answer = RouteResponse { active_tools, ..Default::default() };
        assert_eq!(route(answer.clone(), None, 1), answer);
        for format in all_formats() {
            let most = answer.encoded_len();
            let rendered = route(answer.clone(), Some(format), most);
            assert!(rendered.encoded_len() <= most, "{format:?}: {}", rendered.encoded_len());
        }
    }

    #[test]
    fn what_has_no_room_is_left_out_and_told() {
        let schema = |n| format!(r#"{{"type":"object","title":"{}"}}"#, "x".repeat(n));
        let mut whole: Vec<_> = (0..8).map(|n| tool(&format!("t{n}"), &schema(1_000))).collect();
        for room in [0, 200, 1_500, 5_000] {
            let mut tools = whole.clone();
            let rendered = rendered(ToolFormat::OpenaiChat, &mut tools, room);
            let size = rendered.encoded_len();
            assert!(size <= room.max(FIELD), "{size} of {room}");
            let kept = names(&rendered);
            assert!(kept.iter().zip(&whole).all(|(name, tool)| *name == tool.model_name));
            assert!(kept.len() < whole.len());
            if room >= 5_000 {
                let told = &rendered.losses;
                assert_eq!(kept.len() + told.len(), whole.len(), "{room}");
                assert!(told.iter().any(|loss| loss.model_name == "t7"), "{told:?}");
            }
        }
        let all = rendered(ToolFormat::OpenaiChat, &mut whole, 1 << 20);
        assert_eq!((names(&all).len(), all.losses.len()), (8, 0));
    }
}
