//! Actions of the testbed's tools: their descriptions, their parameters and the phrases of users who need them.

/// Effect of a tool on its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Effect {
    /// No change, only reading.
    Reads,
    /// Change of data.
    Writes,
    /// Change of data that must have been read before.
    Edits,
    /// Irreversible change of data.
    Destroys,
}

/// Required parameter: its name, JSON type and description.
pub(super) type Field = (&'static str, &'static str, &'static str);

/// Action on an object. In the texts, `{one}` and `{many}` stand for the object in singular and plural, `{of}` for the
/// phrase that says where it is, and `{place}` and `{topic}` for names that a user gives.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Verb {
    /// First part of the tool's name.
    pub(super) name: &'static str,
    /// True if the name continues with the object's plural.
    pub(super) of_many: bool,
    /// Description of the tool.
    pub(super) says: &'static str,
    /// Required parameters.
    pub(super) fields: &'static [Field],
    /// Effect of the tool.
    pub(crate) effect: Effect,
    /// Phrases in which users ask for the tool.
    pub(crate) phrases: &'static [&'static str],
}

const ID: Field = ("id", "string", "Which {one}: its id, as other tools give it.");
const QUERY: Field = ("query", "string", "What to look for, in words.");

pub(super) const LIST: Verb = Verb {
    name: "list",
    of_many: true,
    says: "Lists the {many} {of}, newest first. Use it to see which {many} there are and in what state.",
    fields: &[("within", "string", "Where to look, by its full name.")],
    effect: Effect::Reads,
    phrases: &[
        "show me all {many} in {place}",
        "which {many} are there in {place} right now?",
        "give me an overview of the {many} of {place}",
    ],
};

pub(super) const GET: Verb = Verb {
    name: "get",
    of_many: false,
    says: "Shows one {one} {of} in full. Use it to read everything that is known of a {one}.",
    fields: &[ID],
    effect: Effect::Reads,
    phrases: &[
        "what are the details of the {one} about {topic} in {place}?",
        "open the {one} on {topic} for me, it is in {place}",
        "read me the {one} about {topic} from {place}",
    ],
};

pub(super) const SEARCH: Verb = Verb {
    name: "search",
    of_many: true,
    says: "Searches the {many} {of} by words, person and date. Use it to find {many} about a topic.",
    fields: &[QUERY],
    effect: Effect::Reads,
    phrases: &[
        "find the {many} about {topic} in {place}",
        "are there any {many} in {place} that mention {topic}?",
        "look for {many} on {topic} in {place}",
    ],
};

pub(super) const CREATE: Verb = Verb {
    name: "create",
    of_many: false,
    says: "Creates a new {one} {of}. Use it to add a {one} with a title, a text and further fields.",
    fields: &[
        ("title", "string", "Title of the new {one}."),
        ("text", "string", "Its text, as Markdown."),
    ],
    effect: Effect::Writes,
    phrases: &[
        "please add a new {one} about {topic} to {place}",
        "create a {one} for {topic} in {place}",
        "we need a {one} on {topic} in {place}, make one",
    ],
};

pub(super) const UPDATE: Verb = Verb {
    name: "update",
    of_many: false,
    says: "Changes an existing {one} {of}. Use it to edit the title, owner, state or text of a {one}.",
    fields: &[ID, ("changes", "object", "New values by field; the others stay.")],
    effect: Effect::Edits,
    phrases: &[
        "change the {one} about {topic} in {place}: I am the owner now",
        "edit the title of the {one} on {topic} in {place}",
        "update that {one} in {place}, {topic} is settled",
    ],
};

pub(super) const DELETE: Verb = Verb {
    name: "delete",
    of_many: false,
    says: "Deletes a {one} {of} for good. Use it to remove a {one} that nobody needs any more.",
    fields: &[ID],
    effect: Effect::Destroys,
    phrases: &[
        "get rid of the {one} about {topic} in {place}",
        "delete the old {one} on {topic} from {place}",
        "remove that {one} from {place}, {topic} is over",
    ],
};

pub(super) const QUERY_ROWS: Verb = Verb {
    name: "query",
    of_many: true,
    says: "Queries {many} {of} with conditions and sorting. Use it to answer questions about {many}, such as \
           how many there are.",
    fields: &[("sql", "string", "A SELECT statement on {many}.")],
    effect: Effect::Reads,
    phrases: &[
        "how many {many} did we get since {topic}?",
        "select the ten latest {many} from {place}",
        "what do the {many} in {place} say about {topic}?",
    ],
};

pub(super) const INSERT: Verb = Verb {
    name: "insert",
    of_many: true,
    says: "Inserts new {many} {of}. Use it to store {many} that are not in the database yet.",
    fields: &[("rows", "array", "The new {many}, one object each.")],
    effect: Effect::Writes,
    phrases: &[
        "put these {many} into {place}",
        "store the new {many} from {topic} in {place}",
        "insert one more row with {many} into {place}",
    ],
};

pub(super) const EXPORT: Verb = Verb {
    name: "export",
    of_many: true,
    says: "Exports {many} {of} as CSV or JSON. Use it to hand {many} over to another program.",
    fields: &[("format", "string", "csv or json.")],
    effect: Effect::Reads,
    phrases: &[
        "export the {many} of {place} as a CSV file",
        "I need the {many} from {place} as a spreadsheet",
        "dump all {many} about {topic} to JSON",
    ],
};

pub(super) const READ: Verb = Verb {
    name: "read",
    of_many: false,
    says: "Reads a {one} {of}. Use it to see what is in a {one}.",
    fields: &[("path", "string", "Its path.")],
    effect: Effect::Reads,
    phrases: &[
        "what is in the {one} {place}?",
        "show me the contents of the {one} {place}",
        "read the {one} {place}",
    ],
};

pub(super) const COPY: Verb = Verb {
    name: "copy",
    of_many: false,
    says: "Copies a {one} {of}. Use it to have a {one} twice.",
    fields: &[("from", "string", "Path of the source."), ("to", "string", "Path of the copy.")],
    effect: Effect::Writes,
    phrases: &[
        "make a copy of the {one} {place} before I touch it",
        "duplicate the {one} {place}",
        "copy the {one} {place} to the backup disk",
    ],
};

pub(super) const MOVE: Verb = Verb {
    name: "move",
    of_many: false,
    says: "Moves or renames a {one} {of}. Use it to give a {one} another path.",
    fields: &[("from", "string", "Path now."), ("to", "string", "New path.")],
    effect: Effect::Writes,
    phrases: &[
        "rename the {one} {place}",
        "move the {one} {place} to the archive",
        "the {one} {place} belongs somewhere else, move it",
    ],
};

pub(super) const WRITE: Verb = Verb {
    name: "create",
    of_many: false,
    says: "Creates a {one} {of}. Use it to write a new {one}.",
    fields: &[("path", "string", "Its path.")],
    effect: Effect::Writes,
    phrases: &[
        "write a new {one} {place}",
        "create the {one} {place}",
        "make an empty {one} {place}",
    ],
};

pub(super) const ERASE: Verb = Verb {
    name: "delete",
    of_many: false,
    says: "Deletes a {one} {of} for good. Use it to remove a {one}.",
    fields: &[("path", "string", "Its path.")],
    effect: Effect::Destroys,
    phrases: &[
        "delete the {one} {place}",
        "the {one} {place} can go",
        "remove the {one} {place} from the disk",
    ],
};

pub(super) const FETCH: Verb = Verb {
    name: "fetch",
    of_many: false,
    says: "Fetches a {one} {of} by its address. Use it to load a {one} whose URL is known.",
    fields: &[("url", "string", "Its URL.")],
    effect: Effect::Reads,
    phrases: &[
        "load the {one} at {place}",
        "fetch me the {one} from {place}",
        "what does the {one} at {place} look like today?",
    ],
};

pub(super) const EXTRACT: Verb = Verb {
    name: "extract",
    of_many: false,
    says: "Extracts text and tables from a {one} {of}. Use it to pull facts out of a {one}.",
    fields: &[("url", "string", "Its URL.")],
    effect: Effect::Reads,
    phrases: &[
        "pull the prices out of the {one} at {place}",
        "extract the table from the {one} at {place}",
        "which names appear in the {one} at {place}? only the text matters",
    ],
};

pub(super) const CAPTURE: Verb = Verb {
    name: "capture",
    of_many: false,
    says: "Captures a {one} {of} as a screenshot. Use it to see how a {one} is rendered.",
    fields: &[("url", "string", "Its URL.")],
    effect: Effect::Reads,
    phrases: &[
        "take a screenshot of the {one} at {place}",
        "capture how the {one} at {place} is rendered",
        "I want to see the {one} at {place} as a picture",
    ],
};

pub(super) const DOWNLOAD: Verb = Verb {
    name: "download",
    of_many: false,
    says: "Downloads a {one} {of} to a file. Use it to keep a {one}.",
    fields: &[("url", "string", "Its URL.")],
    effect: Effect::Reads,
    phrases: &[
        "download the {one} from {place}",
        "save the {one} at {place} to a file",
        "keep a local version of the {one} at {place}",
    ],
};
