//! Pages of a list of lobbies.
//!
//! A list has lobbies with a free seat first, so its order changes between two pages. A cursor therefore
//! names the lobbies that the client has, not a place in the order (decision 64).

use std::collections::BTreeSet;

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    base::ambient::Timestamp,
    models::{
        errors::{Error, bad_body},
        ids::LobbyId,
    },
};

/// The most lobbies of a page.
pub const LIMIT_MAX: usize = 500;
/// The lobbies of a page whose request names no limit.
const LIMIT_DEFAULT: usize = 100;
/// The most lobbies that a cursor names: those of a whole list, and a hundred that have gone since. Such a
/// cursor has 4,808 characters, where the HTTP API takes 10,240 bytes of headers and address together, and
/// CloudFront an address of 8,192.
const SHOWN_MAX: usize = 600;
/// Bytes of an entry of a cursor, eight characters in Base64.
const ENTRY_BYTES: usize = 6;

/// The first bits of a lobby's identifier. Two of 500 lobbies have the same once in two billion lists.
type Entry = [u8; ENTRY_BYTES];

/// A page as requested.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PageRequest {
    limit: usize,
    cursor: Option<Cursor>,
}

/// Where a page goes on.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Cursor {
    /// When the list of the first page was read.
    began_at: Timestamp,
    /// The lobbies of all pages so far.
    shown: BTreeSet<Entry>,
}

impl PageRequest {
    /// The page of these query parameters; an empty cursor is none.
    ///
    /// # Errors
    /// [`Error::BadBody`] for a limit other than 1 to 500, and for a cursor that no page had.
    pub fn parse(limit: Option<&str>, cursor: Option<&str>) -> Result<Self, Error> {
        let limit = match limit {
            Some(text) => text.parse().ok().filter(|limit| (1..=LIMIT_MAX).contains(limit)),
            None => Some(LIMIT_DEFAULT),
        };
        let limit = limit.ok_or_else(|| bad_body("limit", "must be 1 to 500"))?;
        let cursor = cursor.filter(|cursor| !cursor.is_empty()).map(|text| {
            Cursor::parse(text).ok_or_else(|| bad_body("cursor", "must be the next_cursor of a page"))
        });
        Ok(Self { limit, cursor: cursor.transpose()? })
    }

    /// When the list of its first page was read; `None` for a first page.
    #[must_use]
    pub fn began_at(&self) -> Option<Timestamp> {
        self.cursor.as_ref().map(|cursor| cursor.began_at)
    }

    /// The page out of `list`, which was read at `read_at`, and the cursor of the next one if there is more.
    /// `key` is a lobby's identifier and its creation.
    pub fn take<'a, T>(
        &self,
        list: &'a [T],
        read_at: Timestamp,
        key: impl Fn(&T) -> (&LobbyId, Timestamp),
    ) -> (Vec<&'a T>, Option<String>) {
        let mut cursor = self.cursor.clone().unwrap_or_else(|| {
            // Where the creator's clock is ahead, a lobby is newer than the list that shows it.
            let began_at = list.iter().map(|lobby| key(lobby).1).fold(read_at, Timestamp::max);
            Cursor { began_at, shown: BTreeSet::new() }
        });
        let is_due = |lobby: &&T| {
            let (id, created_at) = key(lobby);
            created_at <= cursor.began_at && !cursor.shown.contains(&entry(id))
        };
        let mut due: Vec<&T> = list.iter().filter(is_due).collect();
        let has_more = due.len() > self.limit;
        due.truncate(self.limit);
        cursor.shown.extend(due.iter().map(|lobby| entry(key(lobby).0)));
        let has_more = has_more && cursor.shown.len() <= SHOWN_MAX;
        (due, has_more.then(|| cursor.text()))
    }
}

impl Cursor {
    fn parse(text: &str) -> Option<Self> {
        let bytes = URL_SAFE_NO_PAD.decode(text).ok()?;
        let (entries, []) = bytes.as_chunks::<ENTRY_BYTES>() else { return None };
        let (began_at, shown) = entries.split_first()?;
        let began_at = began_at.iter().fold(0, |time, byte| time << 8 | u64::from(*byte));
        let is_ours = (1..=SHOWN_MAX).contains(&shown.len()) && shown.is_sorted_by(|one, next| one < next);
        is_ours.then(|| Self { began_at: Timestamp(began_at), shown: shown.iter().copied().collect() })
    }

    fn text(&self) -> String {
        let [_, _, began_at @ ..] = self.began_at.0.to_be_bytes();
        let entries: Vec<Entry> = std::iter::once(began_at).chain(self.shown.iter().copied()).collect();
        URL_SAFE_NO_PAD.encode(entries.as_flattened())
    }
}

/// The first bits of a UUID, which are random. Identifiers of another form have entries, too, but may share
/// them.
fn entry(lobby_id: &LobbyId) -> Entry {
    let mut digits = lobby_id.as_str().chars().filter_map(|digit| digit.to_digit(16));
    std::array::from_fn(|_| {
        let mut digit = || digits.next().and_then(|digit| u8::try_from(digit).ok()).unwrap_or_default();
        digit() << 4 | digit()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ambient::Ambient;

    const READ_AT: Timestamp = Timestamp(1_772_000_000_000);

    fn lobbies(count: usize) -> Vec<(LobbyId, Timestamp)> {
        (0..count).map(|_| (Ambient::system().uuid().into(), READ_AT.before(HOUR))).collect()
    }

    const HOUR: std::time::Duration = std::time::Duration::from_secs(3_600);

    fn take<'a>(
        list: &'a [(LobbyId, Timestamp)],
        limit: &str,
        cursor: Option<&str>,
    ) -> (Vec<&'a LobbyId>, Option<String>) {
        let request = PageRequest::parse(Some(limit), cursor).unwrap();
        let (page, next) = request.take(list, READ_AT, |(id, created_at)| (id, *created_at));
        (page.into_iter().map(|(id, _)| id).collect(), next)
    }

    /// All pages of a list that changes before each.
    fn walk(
        list: &mut Vec<(LobbyId, Timestamp)>,
        change: impl Fn(&mut Vec<(LobbyId, Timestamp)>),
    ) -> Vec<LobbyId> {
        let (mut seen, mut cursor) = (Vec::new(), None);
        loop {
            change(list);
            let (page, next) = take(list, "7", cursor.as_deref());
            seen.extend(page.into_iter().cloned());
            cursor = next;
            if cursor.is_none() {
                return seen;
            }
        }
    }

    #[test]
    fn pages_have_each_lobby_once_in_the_order_of_the_list() {
        let mut list = lobbies(50);
        let seen = walk(&mut list, |_| {});
        assert!(seen.iter().eq(list.iter().map(|(id, _)| id)));
        let (page, next) = take(&list, "50", None);
        assert_eq!((page.len(), next), (50, None));
    }

    #[test]
    fn a_lobby_that_stays_is_neither_repeated_nor_skipped_however_the_order_changes() {
        for step in [1, 7, 13, 29] {
            let mut list = lobbies(50);
            let staying: BTreeSet<_> = list.iter().skip(10).map(|(id, _)| id.clone()).collect();
            let gone: Vec<_> = list.iter().take(10).map(|(id, _)| id.clone()).collect();
            let seen = walk(&mut list, |list| {
                list.rotate_left(step);
                // Of those that go, one before each page.
                if let Some(at) = list.iter().position(|(id, _)| gone.contains(id)) {
                    list.remove(at);
                }
            });
            let once: BTreeSet<_> = seen.iter().cloned().collect();
            assert_eq!(seen.len(), once.len(), "none twice");
            assert!(staying.is_subset(&once), "none is missing");
        }
    }

    #[test]
    fn lobbies_created_after_the_first_page_are_in_no_later_one_so_that_pages_end() {
        let mut list = lobbies(20);
        let (_, cursor) = take(&list, "15", None);
        for _ in 0..20 {
            list.insert(0, (Ambient::system().uuid().into(), READ_AT + HOUR));
        }
        let (page, next) = take(&list, "15", cursor.as_deref());
        assert_eq!((page.len(), next), (5, None));
    }

    #[test]
    fn a_lobby_whose_creators_clock_is_ahead_is_not_skipped() {
        let mut list = lobbies(20);
        list.push((Ambient::system().uuid().into(), READ_AT + HOUR));
        let (_, cursor) = take(&list, "15", None);
        assert_eq!(take(&list, "15", cursor.as_deref()).0.len(), 6);
    }

    #[test]
    fn a_cursor_is_read_as_it_was_written_and_is_bounded() {
        let list = lobbies(700);
        let (_, mut cursor) = take(&list, "300", None);
        let parsed = Cursor::parse(cursor.as_ref().unwrap()).unwrap();
        assert_eq!((parsed.began_at, parsed.shown.len()), (READ_AT, 300));
        cursor = take(&list, "300", cursor.as_deref()).1;
        assert_eq!(cursor.as_ref().map(String::len), Some(4_808));
        assert_eq!(
            take(&list, "10", cursor.as_deref()).1,
            None,
            "it ends where its cursor would be too long"
        );
    }

    #[test]
    fn limits_and_cursors_of_other_forms_are_refused() {
        let refused = |limit: Option<&str>, cursor: Option<&str>| match PageRequest::parse(limit, cursor) {
            Err(Error::BadBody { path, .. }) => path,
            other => panic!("{limit:?} {cursor:?}: {other:?}"),
        };
        for limit in ["", "0", "501", "-1", "1.5", "ten", "1,2", "99999999999999999999"] {
            assert_eq!(refused(Some(limit), None), "limit");
        }
        let unsorted = [[0; 6], [2; 6], [1; 6]];
        let twice = [[0; 6], [1; 6], [1; 6]];
        let encoded = |entries: &[Entry]| URL_SAFE_NO_PAD.encode(entries.as_flattened());
        let (alone, too_long) = (encoded(&[[0; 6]]), "A".repeat(8 * (SHOWN_MAX + 2)));
        let (unsorted, twice) = (encoded(&unsorted), encoded(&twice));
        for cursor in
            ["x", "AAAA", "AAAAAAAAAAA", "AAAAAAA=", "AAAAAAA+", &alone, &too_long, &unsorted, &twice]
        {
            assert_eq!(refused(None, Some(cursor)), "cursor", "{cursor}");
        }
        let page = PageRequest::parse(None, Some("")).unwrap();
        assert_eq!(page, PageRequest { limit: 100, cursor: None }, "an empty one is none");
    }
}
