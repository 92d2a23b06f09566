//! How a batch is spread over threads. Either all threads work on all texts together, step by step,
//! or each takes whole texts: the first is quicker for one text, the second wastes nothing on waiting.

/// Tokens that one thread works on at a time: their activations stay in its cache.
const GROUP_TOKENS: usize = 192;

/// A spread of a batch's texts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// All threads work on the whole batch together.
    Together,
    /// Groups of texts, by index, for threads to take; the longest first.
    Apart(Vec<Vec<usize>>),
}

/// Plans for texts of `lengths` tokens.
pub(super) fn plan(lengths: &[usize], threads: usize) -> Plan {
    let total: usize = lengths.iter().sum();
    let groups = group(lengths, total.div_ceil(GROUP_TOKENS).next_multiple_of(threads));
    let longest = groups.iter().map(|group| tokens(lengths, group)).max().unwrap_or(0);
    // Rounds of equal groups; one that is an eighth longer than the mean costs as much as waiting does.
    let even = longest * groups.len() * 8 <= total * 9;
    if threads > 1
        && !(groups.len().is_multiple_of(threads) && even)
        && total <= GROUP_TOKENS * threads
    {
        return Plan::Together;
    }
    Plan::Apart(groups)
}

/// Deals texts, the longest first, each to the group with the fewest tokens.
fn group(lengths: &[usize], count: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&text| std::cmp::Reverse(lengths[text]));
    let mut groups = vec![Vec::new(); count.min(lengths.len())];
    let mut sizes = vec![0; groups.len()];
    for text in order {
        let smallest = (0..sizes.len()).min_by_key(|&group| sizes[group]).unwrap_or(0);
        groups[smallest].push(text);
        sizes[smallest] += lengths[text];
    }
    groups
}

fn tokens(lengths: &[usize], group: &[usize]) -> usize {
    group.iter().map(|&text| lengths[text]).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_text_is_worked_on_together() {
        assert_eq!(plan(&[14], 2), Plan::Together);
        assert_eq!(plan(&[256], 2), Plan::Together);
        assert_eq!(plan(&[14], 1), Plan::Apart(vec![vec![0]]));
    }

    #[test]
    fn equal_texts_are_taken_apart() {
        let Plan::Apart(groups) = plan(&[14; 16], 2) else { panic!("apart") };
        assert_eq!(groups.iter().map(Vec::len).collect::<Vec<_>>(), [8, 8]);
    }

    #[test]
    fn a_long_and_a_short_text_are_worked_on_together() {
        assert_eq!(plan(&[200, 14], 2), Plan::Together);
        assert!(matches!(plan(&[200, 14, 90, 96], 2), Plan::Apart(_)));
    }

    #[test]
    fn every_text_is_in_one_group_and_groups_fit() {
        let lengths: Vec<usize> = (0..300).map(|i| 5 + i * 7 % 120).collect();
        let Plan::Apart(groups) = plan(&lengths, 4) else { panic!("apart") };
        let mut all: Vec<usize> = groups.iter().flatten().copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..300).collect::<Vec<_>>());
        assert!(groups.iter().all(|group| tokens(&lengths, group) <= GROUP_TOKENS + 60));
    }
}
