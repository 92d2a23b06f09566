//! Grid of prices: every API, history, number of turns and method.

use toolgate_core::error::Error;
use toolgate_llm::strategy::Api;

use super::bill::Totals;
use super::pieces::Counter;
use super::play::Play;
use super::scene::{Ranked, Scene, Scenes};
use super::turns::Turns;
use super::{Bench, Method, Provider, TOLERANCE};

/// Cell of the grid.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Cell {
    /// API of the requests.
    pub api: Api,
    /// Tokens of the initial history.
    pub history: u32,
    /// Number of turns of each conversation.
    pub turns: usize,
    /// Method.
    pub method: Method,
    /// Totals of all conversations.
    pub totals: Totals,
}

/// Results of one set of queries.
#[derive(Debug, Clone, PartialEq)]
pub struct Grid {
    /// Name of the set.
    pub name: String,
    /// Number of conversations.
    pub conversations: usize,
    /// Cells, those of one API together, then by history, turns and method.
    pub cells: Vec<Cell>,
}

/// Cell in which `auto` is dearer than another method by more than [`TOLERANCE`].
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Dearer {
    /// The cell of `auto`.
    pub auto: Cell,
    /// The cheaper one.
    pub other: Cell,
}

impl Grid {
    /// Plays the conversations of one set by every method.
    ///
    /// # Errors
    /// An internal error of the index, or a definition that can't be rendered.
    pub(super) fn play(
        bench: &Bench,
        scenes: &Scenes<'_>,
        turns: &Turns<'_>,
        counter: &Counter,
    ) -> Result<Self, Error> {
        let mut grid = Self {
            name: turns.name.to_owned(),
            conversations: turns.conversations.len(),
            cells: Vec::new(),
        };
        for conversation in &turns.conversations {
            scenes.with(conversation, |scene| {
                let ranked: Vec<Ranked<'_>> =
                    conversation.iter().map(|turn| scene.rank(turn)).collect::<Result<_, _>>()?;
                for provider in Provider::ALL {
                    for method in Method::ALL {
                        grid.add(bench, scene, counter, &ranked, provider, method)?;
                    }
                }
                Ok(())
            })?;
        }
        let place = |cell: &Cell| (place_of(cell.api), cell.history, cell.turns);
        grid.cells.sort_by_key(place);
        Ok(grid)
    }

    /// Returns the cells of one API, history and number of turns, one a method.
    pub fn row(&self, api: Api, history: u32, turns: usize) -> impl Iterator<Item = &Cell> {
        let is_in =
            move |cell: &&Cell| (cell.api, cell.history, cell.turns) == (api, history, turns);
        self.cells.iter().filter(is_in)
    }

    /// Returns the cells in which `auto` is dearer than it may be, each with the cheapest of the others. A method that had
    /// no place for a tool that was called is not one of them.
    #[must_use]
    pub fn dearer(&self) -> Vec<Dearer> {
        let autos = self.cells.iter().filter(|cell| cell.method == Method::AUTO);
        let against = |auto: &Cell| {
            let row = self.row(auto.api, auto.history, auto.turns);
            let is_whole = |cell: &&Cell| cell.totals.left_out == 0;
            let cheapest =
                row.filter(is_whole).min_by(|a, b| a.totals.price.total_cmp(&b.totals.price))?;
            let is_dearer = auto.totals.price > cheapest.totals.price * TOLERANCE;
            is_dearer.then_some(Dearer { auto: *auto, other: *cheapest })
        };
        autos.filter_map(against).collect()
    }

    fn add(
        &mut self,
        bench: &Bench,
        scene: &Scene<'_>,
        counter: &Counter,
        ranked: &[Ranked<'_>],
        provider: Provider,
        method: Method,
    ) -> Result<(), Error> {
        // Without a history there is no message for it, so that the other lengths can't be played with it.
        let is_like = |one: &u32, _: &u32| *one > 0 && !method.depends_on_history();
        for histories in bench.histories.chunk_by(is_like) {
            let mut play = Play::new(scene, counter, provider, method, histories)?;
            for (number, turn) in (1..).zip(ranked) {
                let (_, totals) = play.turn(turn)?;
                if bench.turns.contains(&number) {
                    for (history, totals) in histories.iter().zip(totals) {
                        let api = provider.api;
                        self.count(Cell { api, history: *history, turns: number, method, totals });
                    }
                }
            }
        }
        Ok(())
    }

    fn count(&mut self, cell: Cell) {
        let is_same = |known: &&mut Cell| {
            (known.api, known.history, known.turns, known.method)
                == (cell.api, cell.history, cell.turns, cell.method)
        };
        match self.cells.iter_mut().find(is_same) {
            Some(known) => known.totals.add(&cell.totals),
            None => self.cells.push(cell),
        }
    }
}

fn place_of(api: Api) -> usize {
    Provider::ALL.iter().position(|provider| provider.api == api).unwrap_or(usize::MAX)
}
