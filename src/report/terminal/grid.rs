//! Cells under each other.

/// A line for each row, in columns as wide as their widest cell, two apart: the first to the left, the
/// others to the right. All rows have as many cells.
pub(super) fn lines<T: AsRef<str>>(rows: &[Vec<T>]) -> Vec<String> {
    let columns = rows.first().map_or(0, Vec::len);
    let widest = |column: usize| {
        let cells = rows.iter().map(|row| row[column].as_ref().chars().count());
        cells.max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..columns).map(widest).collect();
    rows.iter()
        .map(|row| {
            let cells = row.iter().zip(&widths).enumerate();
            let cells: Vec<String> = cells
                .map(|(column, (cell, width))| match (column, cell.as_ref()) {
                    (0, cell) => format!("{cell:width$}"),
                    (_, cell) => format!("{cell:>width$}"),
                })
                .collect();
            cells.join("  ")
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_as_wide_as_their_widest_cell() {
        let rows = [vec!["", "p50 µs"], vec!["epoll", "4"]];
        assert_eq!(lines(&rows), ["       p50 µs", "epoll       4"]);
        assert_eq!(lines::<&str>(&[]), [""; 0]);
    }
}
