//! Tools of an answer in the format of a provider's API.

use prost::Message as _;
use serde_json::{Value, json};
use toolgate_core::error::Error;
use toolgate_llm::SEARCH_TOOL;
use toolgate_llm::render::{
    AnthropicOptions, Loss, RenderError, Rendered, Tool, anthropic, gemini, mcp, openai_chat,
    openai_responses,
};
use toolgate_proto::v1::{
    ActiveTool, AnthropicRenderOptions, BatchGetToolSchemasResponse, Detail, RenderLoss,
    RenderOptions, RenderedTools, RouteResponse, SearchToolsResponse, ToolFormat,
};

/// Bytes of a field's tag and length, at most.
pub(super) const FIELD: usize = 8;

/// Bytes that a cache breakpoint adds to a definition.
const BREAKPOINT: usize = r#","cache_control":{"type":"ephemeral"}"#.len();

/// Rendering that a request asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Format {
    api: ToolFormat,
    has_search_tool: bool,
    anthropic: AnthropicRenderOptions,
}

impl Format {
    /// Returns the rendering that a request asks for; `None` for definitions as they were registered.
    ///
    /// # Errors
    /// [`Error::InvalidFields`] for an unknown format, for a level of detail without definitions, and for options that
    /// the format does not have.
    pub(super) fn from_request(
        wire: Option<&RenderOptions>,
        detail: i32,
    ) -> Result<Option<Self>, Error> {
        let Some(options) = wire else { return Ok(None) };
        let api = ToolFormat::try_from(options.format).unwrap_or_default();
        if api == ToolFormat::Unspecified {
            return Err(Error::field("render.format", "must be a value of ToolFormat"));
        }
        let with_definitions = [Detail::Unspecified, Detail::Schemas].map(i32::from);
        if !with_definitions.contains(&detail) {
            return Err(Error::field("render", "needs full definitions: DETAIL_SCHEMAS"));
        }
        if options.anthropic.is_some() && api != ToolFormat::Anthropic {
            let message = "is for TOOL_FORMAT_ANTHROPIC alone";
            return Err(Error::field("render.anthropic", message));
        }
        let anthropic = options.anthropic.unwrap_or_default();
        if anthropic.cache_breakpoint && anthropic.defer_loading {
            let message = "must be false beside defer_loading: deferred tools are outside of the cached prefix";
            return Err(Error::field("render.anthropic.cache_breakpoint", message));
        }
        Ok(Some(Self { api, has_search_tool: options.search_tool, anthropic }))
    }

    /// Returns the same rendering with all tools loaded.
    pub(super) fn undeferred(mut self) -> Self {
        self.anthropic.defer_loading = false;
        self
    }

    fn render(self, tools: &[Tool<'_>]) -> Result<Rendered, RenderError> {
        match self.api {
            ToolFormat::OpenaiChat => openai_chat(tools),
            ToolFormat::OpenaiResponses => openai_responses(tools),
            ToolFormat::Anthropic => anthropic(tools, &AnthropicOptions::default()),
            ToolFormat::Gemini => gemini(tools),
            ToolFormat::Mcp | ToolFormat::Unspecified => mcp(tools),
        }
    }
}

/// Answer with tools, which can be rendered for a provider's API.
pub(super) trait WithTools: prost::Message {
    /// Returns the tools of the answer.
    fn tools(&mut self) -> &mut [ActiveTool];

    /// Sets the rendered tools.
    fn set_rendered(&mut self, rendered: RenderedTools);
}

macro_rules! with_tools {
    ($($answer:ty: $tools:ident),*) => {
        $(impl WithTools for $answer {
            fn tools(&mut self) -> &mut [ActiveTool] {
                &mut self.$tools
            }

            fn set_rendered(&mut self, rendered: RenderedTools) {
                self.rendered = Some(rendered);
            }
        })*
    };
}

with_tools!(
    RouteResponse: active_tools,
    SearchToolsResponse: tools,
    BatchGetToolSchemasResponse: tools
);

/// Renders the tools of an answer, if a format was asked for, in the place of their definitions. The answer gets no
/// larger than `message_max` bytes by it.
pub(super) fn rendered<A: WithTools>(
    mut answer: A,
    format: Option<Format>,
    message_max: usize,
) -> A {
    if let Some(format) = format {
        let rendering = Rendering::of(format, answer.tools());
        let room = message_max.saturating_sub(answer.encoded_len() + FIELD);
        answer.set_rendered(rendering.within(room));
    }
    answer
}

/// Tools in a provider's format, before it is known how much room an answer has for them.
struct Rendering {
    definitions: Vec<Value>,
    losses: Vec<RenderLoss>,
    /// True if the last definition ends a cached prefix.
    has_breakpoint: bool,
}

impl Rendering {
    /// Renders the tools, and removes the definitions from them.
    fn of(format: Format, tools: &mut [ActiveTool]) -> Self {
        let Rendered { tools: mut definitions, mut losses } = render_all(format, tools);
        tools.iter_mut().for_each(forget_definition);
        if format.anthropic.defer_loading {
            for definition in &mut definitions {
                definition["defer_loading"] = true.into();
            }
        }
        if format.has_search_tool {
            let mut search = render_tools(format, vec![SEARCH_TOOL]);
            definitions.splice(0..0, search.tools);
            losses.append(&mut search.losses);
        }
        let losses = losses.into_iter().map(loss_of).collect();
        Self { definitions, losses, has_breakpoint: format.anthropic.cache_breakpoint }
    }

    /// Returns the message, of at most `room` bytes. Where it would have more, the last tools are left out, and the last
    /// losses after them.
    fn within(self, room: usize) -> RenderedTools {
        let Self { mut definitions, mut losses, has_breakpoint } = self;
        let mut texts: Vec<String> = definitions.iter().map(ToString::to_string).collect();
        let loss_size = |loss: &RenderLoss| loss.encoded_len() + FIELD;
        let mut size = FIELD + texts.iter().map(|text| text.len() + 1).sum::<usize>();
        size += losses.iter().map(loss_size).sum::<usize>();
        size += if has_breakpoint { BREAKPOINT } else { 0 };
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
        definitions.truncate(texts.len());
        if has_breakpoint
            && let Some(definition) = definitions.last_mut()
            && let Some(text) = texts.last_mut()
        {
            definition["cache_control"] = json!({ "type": "ephemeral" });
            *text = definition.to_string();
        }
        let tools_json = format!("[{}]", texts.join(","));
        RenderedTools { tools_json, losses, ..Default::default() }
    }
}

/// Renders the tools that can be rendered. A schema that can't be parsed, such as one with a number beyond an `f64`, is
/// a loss of its tool and none of the others.
fn render_all(format: Format, tools: &[ActiveTool]) -> Rendered {
    render_tools(format, tools.iter().map(tool_of).collect())
}

fn render_tools(format: Format, mut tools: Vec<Tool<'_>>) -> Rendered {
    let mut unreadable = Vec::new();
    loop {
        match format.render(&tools) {
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

/// Removes the definition from a tool of an answer that has it elsewhere.
pub(super) fn forget_definition(tool: &mut ActiveTool) {
    tool.description.clear();
    tool.input_schema_json.clear();
    tool.output_schema_json.clear();
    tool.annotations_json.clear();
}

/// Returns the name in a definition, which Chat Completions has within `function`.
fn name_of(definition: &Value) -> Option<&str> {
    let within = definition.get("function").unwrap_or(definition);
    within.get("name")?.as_str()
}

/// Returns a loss as the contract has it.
pub(super) fn loss_of(loss: Loss) -> RenderLoss {
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

    fn all_formats() -> impl Iterator<Item = Format> {
        let apis = (1..).map_while(|number| ToolFormat::try_from(number).ok());
        apis.map(format)
    }

    fn format(api: ToolFormat) -> Format {
        Format { api, has_search_tool: false, anthropic: AnthropicRenderOptions::default() }
    }

    fn options(api: ToolFormat) -> RenderOptions {
        RenderOptions { format: api.into(), ..Default::default() }
    }

    fn render(format: Format, tools: &mut [ActiveTool], room: usize) -> RenderedTools {
        Rendering::of(format, tools).within(room)
    }

    fn refused_field(options: &RenderOptions) -> String {
        let refusal = Format::from_request(Some(options), Detail::Schemas.into());
        refusal.expect_err("a mistake").to_string()
    }

    #[test]
    fn what_is_asked_for_is_checked() {
        let detail = |detail: Detail| i32::from(detail);
        assert!(matches!(Format::from_request(None, detail(Detail::Names)), Ok(None)));
        let chat = options(ToolFormat::OpenaiChat);
        for full in [Detail::Unspecified, Detail::Schemas] {
            let asked =
                Format::from_request(Some(&chat), detail(full)).expect("it has definitions");
            assert_eq!(asked, Some(format(ToolFormat::OpenaiChat)));
        }
        for brief in [Detail::Names, Detail::Signatures, Detail::References] {
            assert!(Format::from_request(Some(&chat), detail(brief)).is_err());
        }
        for unknown in [0, 99] {
            let options = RenderOptions { format: unknown, ..Default::default() };
            assert!(refused_field(&options).contains("render.format"));
        }
    }

    #[test]
    fn marks_of_anthropic_are_checked() {
        let marks = |cache_breakpoint, defer_loading| {
            Some(AnthropicRenderOptions { cache_breakpoint, defer_loading })
        };
        for (cache_breakpoint, defer_loading) in [(false, false), (true, false), (false, true)] {
            let anthropic = marks(cache_breakpoint, defer_loading);
            let options = RenderOptions { anthropic, ..options(ToolFormat::Anthropic) };
            let asked = Format::from_request(Some(&options), 0).expect("valid").expect("a format");
            assert_eq!(Some(asked.anthropic), anthropic);
        }
        let both = RenderOptions { anthropic: marks(true, true), ..options(ToolFormat::Anthropic) };
        assert!(refused_field(&both).contains("render.anthropic.cache_breakpoint"));
        let others = all_formats().map(|format| format.api);
        for api in others.filter(|api| *api != ToolFormat::Anthropic) {
            let options = RenderOptions { anthropic: marks(true, false), ..options(api) };
            assert!(refused_field(&options).contains("render.anthropic:"), "{api:?}");
        }
    }

    #[test]
    fn definitions_are_in_the_rendered_tools_and_nowhere_else() {
        for format in all_formats() {
            let mut tools = [tool("a", r#"{"type":"object"}"#), tool("b", r#"{"type":"object"}"#)];
            let rendered = render(format, &mut tools, 1 << 20);
            assert_eq!(names(&rendered), ["a", "b"], "{format:?}");
            assert!(rendered.tools_json.contains("Does a."), "{format:?}");
            assert!(tools.iter().all(|tool| tool.description.is_empty()), "{format:?}");
            assert!(tools.iter().all(|tool| tool.input_schema_json.is_empty()), "{format:?}");
        }
    }

    #[test]
    fn properties_keep_their_order() {
        let schema =
            r#"{"type":"object","properties":{"z":{"type":"string"},"a":{"type":"string"}}}"#;
        for format in all_formats() {
            let text = render(format, &mut [tool("t", schema)], 1 << 20).tools_json;
            assert!(text.find(r#""z":"#) < text.find(r#""a":"#), "{format:?}: {text}");
        }
    }

    #[test]
    fn the_search_stands_before_the_tools() {
        for format in all_formats() {
            let format = Format { has_search_tool: true, ..format };
            let rendered = render(format, &mut [tool("a", "{}")], 1 << 20);
            assert_eq!(names(&rendered), [SEARCH_TOOL.name, "a"], "{format:?}");
            assert!(rendered.losses.is_empty(), "{format:?}: {:?}", rendered.losses);
        }
    }

    #[test]
    fn the_cached_prefix_ends_with_the_last_definition_that_has_room() {
        let anthropic = AnthropicRenderOptions { cache_breakpoint: true, defer_loading: false };
        let format = Format { anthropic, ..format(ToolFormat::Anthropic) };
        let schema = format!(r#"{{"type":"object","title":"{}"}}"#, "x".repeat(1_000));
        for (room, count) in [(1 << 20, 3), (2_600, 2), (0, 0)] {
            let mut tools = ["a", "b", "c"].map(|name| tool(name, &schema));
            let rendered = render(format, &mut tools, room);
            assert!(rendered.encoded_len() <= room.max(FIELD));
            let tools: Vec<Value> = serde_json::from_str(&rendered.tools_json).expect("a list");
            assert_eq!(tools.len(), count);
            for (place, tool) in tools.iter().enumerate() {
                assert_eq!(tool.get("cache_control").is_some(), place + 1 == count, "{tool}");
            }
        }
    }

    #[test]
    fn deferred_tools_are_marked_and_the_search_is_not() {
        let anthropic = AnthropicRenderOptions { cache_breakpoint: false, defer_loading: true };
        let format = Format { has_search_tool: true, anthropic, ..format(ToolFormat::Anthropic) };
        let rendered = render(format, &mut [tool("a", "{}"), tool("b", "{}")], 1 << 20);
        let tools: Vec<Value> = serde_json::from_str(&rendered.tools_json).expect("a list");
        let deferred = tools.iter().map(|tool| tool.get("defer_loading") == Some(&true.into()));
        assert_eq!(deferred.collect::<Vec<_>>(), [false, true, true]);
    }

    #[test]
    fn a_schema_that_cant_be_read_costs_its_tool_alone() {
        for format in all_formats() {
            let mut tools = [tool("a", r#"{"minimum":1e999}"#), tool("b", r#"{"type":"object"}"#)];
            let rendered = render(format, &mut tools, 1 << 20);
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
        assert_eq!(rendered(answer.clone(), None, 1), answer);
        for format in all_formats() {
            let most = answer.encoded_len();
            let rendered = rendered(answer.clone(), Some(format), most);
            assert!(rendered.encoded_len() <= most, "{format:?}: {}", rendered.encoded_len());
        }
    }

    #[test]
    fn what_has_no_room_is_left_out_and_told() {
        let chat = format(ToolFormat::OpenaiChat);
        let schema = |n| format!(r#"{{"type":"object","title":"{}"}}"#, "x".repeat(n));
        let mut whole: Vec<_> = (0..8).map(|n| tool(&format!("t{n}"), &schema(1_000))).collect();
        for room in [0, 200, 1_500, 5_000] {
            let mut tools = whole.clone();
            let rendered = render(chat, &mut tools, room);
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
        let all = render(chat, &mut whole, 1 << 20);
        assert_eq!((names(&all).len(), all.losses.len()), (8, 0));
    }
}
