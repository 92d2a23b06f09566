//! Distribution of a batch over threads. Either all threads work on all texts together, step by step, or each takes
//! whole texts. The first is faster for one text; the second wastes no time on waiting.

use std::cmp::Reverse;

/// Tokens of the even groups that a batch is dealt into.
const GROUP_TOKENS: usize = 192;

/// Tokens that one of several threads takes at a time. If another process needs the core of one, the other threads take
/// its remaining pieces. All weights are read for each piece; from this size on, that costs almost nothing.
const PIECE_TOKENS: usize = 64;

/// Distribution of a batch's texts.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Plan {
    /// All threads work on the whole batch together.
    Together,
    /// Each thread takes pieces of the batch; a piece lists texts by index.
    Apart(Vec<Vec<usize>>),
}

/// Length in tokens of a text whose attention, which grows with the square, takes as long as everything else.
const EVEN_TOKENS: usize = 512;

/// Plans for texts of `lengths` tokens.
pub(super) fn plan(lengths: &[usize], threads: usize) -> Plan {
    let tokens: usize = lengths.iter().sum();
    let count = tokens.div_ceil(GROUP_TOKENS).next_multiple_of(threads).min(lengths.len());
    let groups = group(lengths, count);
    let longest = groups.first().map_or(0, |group| costs(lengths, group));
    let total: usize = lengths.iter().map(|&length| cost(length)).sum();
    // Rounds of equal groups. A group that is an eighth longer than the mean costs as much as waiting does.
    let even = longest * count * 8 <= total * 9;
    if threads > 1 && !(count.is_multiple_of(threads) && even) && tokens <= GROUP_TOKENS * threads {
        return Plan::Together;
    }
    // A thread's share is a run of groups: it gets one of each size.
    let share = |thread| (thread..count).step_by(threads);
    let piece_tokens = if threads > 1 { PIECE_TOKENS } else { GROUP_TOKENS };
    let pieces = |group: usize| pieces(lengths, &groups[group], piece_tokens);
    Plan::Apart((0..threads).flat_map(share).flat_map(pieces).collect())
}

/// Cuts a group into pieces of about `of` tokens.
fn pieces(lengths: &[usize], group: &[usize], of: usize) -> Vec<Vec<usize>> {
    let tokens: usize = group.iter().map(|&text| lengths[text]).sum();
    let count = tokens.div_ceil(of).max(1);
    group.chunks(group.len().div_ceil(count).max(1)).map(<[usize]>::to_vec).collect()
}

/// Deals texts, the longest first, to the cheapest group each time; the most expensive group comes first.
fn group(lengths: &[usize], count: usize) -> Vec<Vec<usize>> {
    let mut order: Vec<usize> = (0..lengths.len()).collect();
    order.sort_by_key(|&text| Reverse(lengths[text]));
    let mut groups = vec![Vec::new(); count];
    let mut sizes = vec![0; count];
    for text in order {
        let smallest = (0..count).min_by_key(|&group| sizes[group]).unwrap_or(0);
        groups[smallest].push(text);
        sizes[smallest] += cost(lengths[text]);
    }
    groups.sort_by_key(|group| Reverse(costs(lengths, group)));
    groups
}

/// Returns the relative cost of a text of `length` tokens.
fn cost(length: usize) -> usize {
    length * (EVEN_TOKENS + length)
}

fn costs(lengths: &[usize], group: &[usize]) -> usize {
    group.iter().map(|&text| cost(lengths[text])).sum()
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
        let Plan::Apart(pieces) = plan(&[14; 16], 2) else { panic!("apart") };
        assert_eq!(pieces.iter().map(Vec::len).collect::<Vec<_>>(), [4; 4]);
        let Plan::Apart(alone) = plan(&[14; 12], 1) else { panic!("apart") };
        assert_eq!(alone.len(), 1, "nobody could take the rest");
    }

    #[test]
    fn a_long_and_a_short_text_are_worked_on_together() {
        assert_eq!(plan(&[200, 14], 2), Plan::Together);
        assert!(matches!(plan(&[200, 14, 90, 96], 2), Plan::Apart(_)));
    }

    #[test]
    fn every_text_is_in_one_piece_and_pieces_fit() {
        let lengths: Vec<usize> = (0..300).map(|i| 5 + i * 7 % 120).collect();
        let Plan::Apart(pieces) = plan(&lengths, 4) else { panic!("apart") };
        let mut all: Vec<usize> = pieces.iter().flatten().copied().collect();
        all.sort_unstable();
        assert_eq!(all, (0..300).collect::<Vec<_>>());
        let tokens = |group: &Vec<usize>| group.iter().map(|&text| lengths[text]).sum::<usize>();
        assert!(pieces.iter().all(|piece| tokens(piece) <= PIECE_TOKENS + 120));
    }

    #[test]
    fn long_texts_are_shared_out_evenly() {
        let lengths: Vec<usize> = [202; 4].into_iter().chain([52; 8]).chain([14; 20]).collect();
        let Plan::Apart(groups) = plan(&lengths, 2) else { panic!("apart") };
        let (first, second) = groups.split_at(groups.len() / 2);
        let sum = |groups: &[Vec<usize>]| -> usize {
            groups.iter().map(|group| costs(&lengths, group)).sum()
        };
        assert!(sum(first).abs_diff(sum(second)) * 20 < sum(&groups));
    }
}
