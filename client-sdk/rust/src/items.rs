//! Streams of items: of a listing, page by page, or of a watch.

use std::fmt;
use std::future::poll_fn;
use std::pin::Pin;
use std::task::{Context, Poll};
use std::vec;

use futures_core::Stream;
use futures_util::stream::try_unfold;

use crate::error::Error;

/// Stream of items that are fetched on demand. It ends after an error. It implements [`Stream`], but
/// [`next`](Self::next) needs no extension trait.
///
/// ```no_run
/// # async fn example(client: toolgate_client::Client) -> Result<(), toolgate_client::Error> {
/// let mut tools = client.tools(Default::default());
/// while let Some(tool) = tools.next().await {
///     println!("{}", tool?.model_name);
/// }
/// # Ok(())
/// # }
/// ```
#[must_use = "nothing is fetched until an item is asked for"]
pub struct ItemStream<T>(Pin<Box<dyn Stream<Item = Result<T, Error>> + Send>>);

impl<T> ItemStream<T> {
    pub(crate) fn new(items: impl Stream<Item = Result<T, Error>> + Send + 'static) -> Self {
        Self(Box::pin(items))
    }

    /// Returns the next item, or `None` after the last one.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn next(&mut self) -> Option<Result<T, Error>> {
        poll_fn(|context| self.0.as_mut().poll_next(context)).await
    }

    /// Returns all remaining items. Use it for a listing only; a watch never ends.
    ///
    /// # Errors
    /// The call failed; see [`Error`].
    pub async fn all(mut self) -> Result<Vec<T>, Error> {
        let mut items = Vec::new();
        while let Some(item) = self.next().await {
            items.push(item?);
        }
        Ok(items)
    }
}

impl<T> Stream for ItemStream<T> {
    type Item = Result<T, Error>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        self.0.as_mut().poll_next(context)
    }
}

impl<T> fmt::Debug for ItemStream<T> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("ItemStream")
    }
}

/// Streams the items of all pages. `fetch` returns a page's items and the token of the next page, which is empty after
/// the last.
pub(crate) fn paged<T, F>(
    first_token: String,
    fetch: impl Fn(String) -> F + Send + 'static,
) -> ItemStream<T>
where
    T: Send + 'static,
    F: Future<Output = Result<(Vec<T>, String), Error>> + Send + 'static,
{
    let start = (Vec::new().into_iter(), Some(first_token));
    ItemStream::new(try_unfold((start, fetch), |((items, token), fetch)| next(items, token, fetch)))
}

type Pages<T, P> = ((vec::IntoIter<T>, Option<String>), P);

async fn next<T, P, F>(
    mut items: vec::IntoIter<T>,
    mut token: Option<String>,
    fetch: P,
) -> Result<Option<(T, Pages<T, P>)>, Error>
where
    P: Fn(String) -> F,
    F: Future<Output = Result<(Vec<T>, String), Error>>,
{
    loop {
        if let Some(item) = items.next() {
            return Ok(Some((item, ((items, token), fetch))));
        }
        let Some(page) = token else { return Ok(None) };
        let (fetched, following) = fetch(page).await?;
        items = fetched.into_iter();
        token = Some(following).filter(|token| !token.is_empty());
    }
}
