//! Which rows belong together: the responses to one prompt.

/// Rows grouped by an identifier per row (any numbers, in any order).
///
/// Where the identifiers ascend, members are found by scanning one run; otherwise by comparing all rows, which costs
/// time quadratic in the number of rows but no memory.
#[derive(Clone, Copy, Debug)]
pub struct Groups<'a> {
    ids: &'a [u32],
    ascending: bool,
}

impl<'a> Groups<'a> {
    /// Groups from one identifier per row.
    pub fn new(ids: &'a [u32]) -> Self {
        Groups { ids, ascending: ids.iter().is_sorted() }
    }

    /// The number of rows.
    pub fn rows(&self) -> usize {
        self.ids.len()
    }

    /// The first row of each group, in order of appearance.
    pub fn leaders(self) -> impl Iterator<Item = usize> + 'a {
        (0..self.ids.len()).filter(move |row| self.is_leader(*row))
    }

    fn is_leader(&self, row: usize) -> bool {
        let Some(id) = self.ids.get(row) else { return false };
        if self.ascending {
            row == 0 || self.ids.get(row - 1) != Some(id)
        } else {
            !self.ids.iter().take(row).any(|other| other == id)
        }
    }

    /// The rows of the group that `row` belongs to, ascending.
    pub fn members_of(self, row: usize) -> impl Iterator<Item = usize> + Clone + 'a {
        let id = self.ids.get(row);
        let leader = if self.ascending {
            self.ids.partition_point(|other| Some(other) < id)
        } else {
            self.ids.iter().position(|other| Some(other) == id).unwrap_or(row)
        };
        self.members(leader)
    }

    /// The rows of the group that starts at row `leader`, ascending.
    pub fn members(self, leader: usize) -> impl Iterator<Item = usize> + Clone + 'a {
        let id = self.ids.get(leader).copied();
        let ascending = self.ascending;
        self.ids
            .iter()
            .enumerate()
            .skip(leader)
            .take_while(move |(_, other)| !ascending || Some(**other) == id)
            .filter(move |(_, other)| Some(**other) == id)
            .map(|(row, _)| row)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::vec;
    use std::vec::Vec;

    #[test]
    fn groups_in_any_order() {
        let groups = Groups::new(&[7, 3, 7, 3, 9]);
        let all: Vec<Vec<usize>> = groups.leaders().map(|leader| groups.members(leader).collect()).collect();
        assert_eq!(all, vec![vec![0, 2], vec![1, 3], vec![4]]);
        let sorted = Groups::new(&[1, 1, 4, 4, 4]);
        let all: Vec<Vec<usize>> = sorted.leaders().map(|leader| sorted.members(leader).collect()).collect();
        assert_eq!(all, vec![vec![0, 1], vec![2, 3, 4]]);
        assert_eq!(groups.members_of(3).collect::<Vec<_>>(), vec![1, 3]);
        assert_eq!(sorted.members_of(4).collect::<Vec<_>>(), vec![2, 3, 4]);
        assert_eq!(Groups::new(&[]).leaders().count(), 0);
    }
}
