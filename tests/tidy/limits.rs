//! Figures and their limits. A limit follows its figure down at once, and up only where a commit says why.

/// The message for a figure that exceeds its limit, or is over a tenth and more than `step` below it.
pub fn misfit(what: &str, figure: usize, limit: usize, step: usize) -> Option<String> {
    if figure > limit {
        return Some(format!(
            "{what}: {figure} exceeds {limit}: raise the limit in the same commit and say why in its message"
        ));
    }
    let is_far = limit - figure > step && figure * 10 < limit * 9;
    is_far.then(|| format!("{what}: {figure} is over 10 % below {limit}: lower the limit in the same commit"))
}

#[test]
fn a_figure_fits_up_to_its_limit_and_down_to_nine_tenths_of_it() {
    let is_misfit = |figure| misfit("lines", figure, 1_000, 50).is_some();
    assert_eq!([0, 899, 900, 1_000, 1_001].map(is_misfit), [true, true, false, false, true]);
    let above = "lines: 7 exceeds 6: raise the limit in the same commit and say why in its message";
    assert_eq!(misfit("lines", 7, 6, 1).as_deref(), Some(above));
    let below = "lines: 2 is over 10 % below 6: lower the limit in the same commit";
    assert_eq!(misfit("lines", 2, 6, 1).as_deref(), Some(below));
    // A limit of 50 lines is the smallest.
    assert_eq!(misfit("lines", 5, 50, 50), None);
}
