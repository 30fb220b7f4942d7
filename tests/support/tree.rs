//! Reads a tenant's directory back through `view`, to compare it with a model.

use std::collections::BTreeMap;

use strongroom::wire::ViewRange;
use strongroom::{Error, Tenant};

/// Every path from a directory down, itself included: a file's text, `None` for a directory.
pub type Tree = BTreeMap<String, Option<String>>;

/// What is stored at `top` and below it.
pub fn read_tree(tenant: &Tenant, top: &str) -> Result<Tree, Error> {
    let mut tree = Tree::new();
    read_into(tenant, top, &mut tree)?;
    Ok(tree)
}

fn read_into(tenant: &Tenant, directory: &str, tree: &mut Tree) -> Result<(), Error> {
    let reply = tenant.view(directory, None)?;
    let text = reply.as_text().unwrap().to_owned();
    if reply.is_error {
        assert!(text.contains("does not exist"), "{text}");
        return Ok(());
    }
    tree.insert(directory.to_owned(), None);
    for row in text.lines().skip(2) {
        assert!(!row.starts_with("Note: "), "the listing is cut: {row}");
        let (_, path) = row.split_once('\t').unwrap();
        let name = &path[directory.len() + 1..];
        match name.find('/') {
            None => {
                let text = read_text(tenant, path)?;
                tree.insert(path.to_owned(), Some(text));
            }
            Some(slash) if slash + 1 == name.len() => {
                read_into(tenant, path.trim_end_matches('/'), tree)?;
            }
            // The second level, which is read by its own listing.
            Some(_) => {}
        }
    }
    Ok(())
}

/// A file's whole text, page by page. Every line of the model's texts ends in a newline.
fn read_text(tenant: &Tenant, path: &str) -> Result<String, Error> {
    let mut text = String::new();
    let mut from = 1;
    loop {
        let range = (from > 1).then_some(ViewRange {
            start: from,
            end: -1,
        });
        let reply = tenant.view(path, range)?;
        let page = reply.as_text().unwrap();
        assert!(!reply.is_error, "{path}: {page}");
        let mut is_cut = false;
        for line in page.lines().skip(1) {
            match line.split_once('\t') {
                Some((number, line)) if number.trim().parse() == Ok(from) => {
                    text.push_str(line);
                    text.push('\n');
                    from += 1;
                }
                _ => {
                    assert!(line.starts_with("Note: "), "{path}: {line}");
                    is_cut = line.contains("not shown");
                }
            }
        }
        if !is_cut {
            return Ok(text);
        }
    }
}

/// What differs between two trees, without the texts.
pub fn difference(left: &Tree, right: &Tree) -> String {
    let mut rows = Vec::new();
    let paths: std::collections::BTreeSet<_> = left.keys().chain(right.keys()).collect();
    for path in paths {
        let (left, right) = (left.get(path), right.get(path));
        if left != right {
            rows.push(format!("{path}: {} / {}", kind(left), kind(right)));
        }
    }
    rows.join("\n")
}

fn kind(entry: Option<&Option<String>>) -> String {
    match entry {
        None => "nothing".to_owned(),
        Some(None) => "directory".to_owned(),
        Some(Some(text)) => {
            let first = text.lines().next().unwrap_or_default();
            format!("{} bytes, {:.40}", text.len(), first)
        }
    }
}
