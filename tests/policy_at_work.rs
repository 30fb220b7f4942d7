//! Policies over time, and what refusals leave behind: cases that one call and reply do not tell.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use strongroom::policy::{self, Policy};
use strongroom::{Tenant, Vault};

use common::{GROUNDS, Ground, assert_sound, open};

fn policy(text: &str) -> Policy {
    policy::load(&format!("schema = 1\n{text}"), "this test").unwrap()
}

fn each_ground(check: impl Fn(&Vault)) {
    for ground in GROUNDS {
        let opened = open(ground, &Policy::default());
        check(&opened.vault);
        assert_sound(&opened.vault, &format!("{ground:?}"));
    }
}

fn listing(tenant: &Tenant) -> String {
    let reply = tenant.view("/memories", None).unwrap();
    let (_, rows) = reply.as_text().unwrap().split_once('\n').unwrap();
    rows.to_owned()
}

fn refusal(reply: &strongroom::wire::Reply) -> &str {
    assert!(reply.is_error, "{reply:?}");
    reply.as_text().unwrap()
}

#[test]
fn reads_and_refused_writes_create_no_tenant() {
    each_ground(|vault| {
        let tenant = vault.tenant("never/written").unwrap();
        assert_eq!(listing(&tenant), "0B\t/memories");
        let line = "x".repeat(20_000);
        for reply in [
            tenant.view("/memories/a.md", None),
            tenant.create("/memories/d/a.md", &line),
            tenant.create("/memories/policies/a.md", "x\n"),
            tenant.create("/etc/passwd", "x\n"),
            tenant.insert("/memories/a.md", 0, "x\n"),
            tenant.str_replace("/memories/a.md", "x", "y"),
            tenant.rename("/memories/a.md", "/memories/d/b.md"),
            tenant.delete("/memories/a.md"),
            tenant.delete("/memories"),
            tenant.put_bytes("/memories/a.png", b"\xFF\xFE"),
        ] {
            refusal(&reply.unwrap());
        }
        let stats = vault.stats().unwrap();
        assert_eq!((stats.tenants.len(), stats.pending_removals), (0, 0));
    });
}

#[test]
fn a_denied_directory_vanishes_from_listings_and_keeps_its_files() {
    each_ground(|vault| {
        let tenant = vault.tenant("one").unwrap();
        for path in [
            "/memories/a.md",
            "/memories/no/b.md",
            "/memories/mix/secret",
            "/memories/mix/c.md",
        ] {
            tenant.create(path, "x\n").unwrap();
        }
        let open = policy("");
        vault
            .set_policy(&policy(
                "[paths]\ndenied = [\"/memories/no/**\", \"/memories/mix/secret\"]",
            ))
            .unwrap();
        let rows = listing(&tenant);
        assert!(!rows.contains("/no") && !rows.contains("secret"), "{rows}");
        assert!(rows.contains("/memories/mix/c.md"), "{rows}");
        for path in ["/memories/no", "/memories/no/b.md", "/memories/mix/secret"] {
            let reply = tenant.view(path, None).unwrap();
            let expected = format!("The path {path} does not exist. Please provide a valid path.");
            assert_eq!(refusal(&reply), expected);
        }
        let reply = tenant.delete("/memories/mix").unwrap();
        assert_eq!(
            refusal(&reply),
            "Error: /memories/mix was not written: /memories/mix/secret cannot be used and would be \
             moved or deleted with it. Move or delete the other entries one by one"
        );
        vault.set_policy(&open).unwrap();
        assert_eq!(
            listing(&tenant),
            "8B\t/memories\n2B\t/memories/a.md\n4B\t/memories/mix/\n2B\t/memories/mix/c.md\n\
             2B\t/memories/mix/secret\n2B\t/memories/no/\n2B\t/memories/no/b.md"
        );
    });
}

#[test]
fn what_became_read_only_is_read() {
    each_ground(|vault| {
        let tenant = vault.tenant("one").unwrap();
        tenant.create("/memories/ro/a.md", "x\n").unwrap();
        vault
            .set_policy(&policy("[paths]\nread_only = [\"/memories/ro/**\"]"))
            .unwrap();
        let reply = tenant.view("/memories/ro/a.md", None).unwrap();
        assert!(reply.as_text().unwrap().ends_with("     1\tx"), "{reply:?}");
        let reply = tenant.str_replace("/memories/ro/a.md", "x", "y").unwrap();
        assert_eq!(
            refusal(&reply),
            "Error: /memories/ro/a.md was not written: it is read-only. Write to another path"
        );
    });
}

#[test]
fn a_memory_over_a_lowered_quota_can_still_be_edited_and_emptied() {
    each_ground(|vault| {
        let tenant = vault.tenant("one").unwrap();
        let text = "x\n".repeat(500);
        for path in ["/memories/a", "/memories/b", "/memories/c"] {
            tenant.create(path, &text).unwrap();
        }
        let limits = "[limits]\nmax_files = 2\nmax_file_bytes = \"1KiB\"\nmax_image_bytes = \"1KiB\"\nmax_total_bytes = \"1KiB\"";
        vault.set_policy(&policy(limits)).unwrap();
        assert_eq!(
            refusal(&tenant.create("/memories/d", "").unwrap()),
            "Error: /memories/d was not written: there would be too many files, 4 of 2. \
             Delete or merge files that are no longer needed"
        );
        assert_eq!(
            refusal(&tenant.insert("/memories/a", 0, "y\n").unwrap()),
            "Error: /memories/a was not written: the memory would be too large, 3002 of 1024 bytes. \
             Delete or shorten files that are no longer needed"
        );
        // An edit that takes away brings it nearer to the quota, and adds no file.
        let reply = tenant.str_replace("/memories/a", &text, "x\n").unwrap();
        assert!(!reply.is_error, "{reply:?}");
        assert!(
            !tenant
                .rename("/memories/a", "/memories/e")
                .unwrap()
                .is_error
        );
        assert!(!tenant.delete("/memories/b").unwrap().is_error);
    });
}

#[test]
fn on_existing_is_as_the_policy_of_the_moment_says() {
    each_ground(|vault| {
        let tenant = vault.tenant("one").unwrap();
        tenant.create("/memories/a.md", "old\n").unwrap();
        assert!(tenant.create("/memories/a.md", "new\n").unwrap().is_error);
        vault
            .set_policy(&policy("[write]\non_existing = \"overwrite\""))
            .unwrap();
        assert!(!tenant.create("/memories/a.md", "new\n").unwrap().is_error);
        assert_eq!(listing(&tenant), "4B\t/memories\n4B\t/memories/a.md");
    });
}

#[test]
fn the_store_has_a_limit_over_all_tenants() {
    let opened = open(
        Ground::Disk,
        &policy("[limits]\nstore_max_bytes = \"1MiB\""),
    );
    let text = "0123456789abcde\n".repeat(12_000);
    let refused = (0..20).find_map(|number| {
        let tenant = opened.vault.tenant(&format!("tenant/{number}")).unwrap();
        let reply = tenant.create("/memories/a.md", &text).unwrap();
        reply.is_error.then_some((tenant, reply))
    });
    // 192,000 bytes a tenant: the limit comes before the sixth.
    let (tenant, reply) = refused.unwrap();
    let said = refusal(&reply);
    assert!(
        said.starts_with(
            "Error: /memories/a.md was not written: the store that all users share would be too large, "
        ) && said.contains(" of 1048576 bytes. "),
        "{said}"
    );
    assert_eq!(listing(&tenant), "0B\t/memories");
    assert_sound(&opened.vault, "full");
}

#[test]
fn a_directory_moves_only_where_all_below_it_keeps_a_valid_path() {
    each_ground(|vault| {
        let tenant = vault.tenant("one").unwrap();
        let chain = |name: &str, depth: usize| format!("/{name}").repeat(depth);
        // 20 deep each: below one another they would be 40 deep, and 32 is the most.
        tenant
            .create(&format!("/memories{}", chain("a", 20)), "x\n")
            .unwrap();
        tenant
            .create(&format!("/memories{}", chain("b", 20)), "x\n")
            .unwrap();
        let parent = format!("/memories{}", chain("b", 19));
        let before = listing(&tenant);
        let said = tenant
            .rename("/memories/a", &format!("{parent}/a"))
            .unwrap();
        assert!(refusal(&said).starts_with("Error: "), "{said:?}");
        assert_eq!(listing(&tenant), before);
        // 12 and 20 are 32.
        let fits = format!("/memories{}/a", chain("b", 12));
        assert!(!tenant.rename("/memories/a", &fits).unwrap().is_error);
        let moved = format!("/memories{}{}", chain("b", 12), chain("a", 20));
        assert!(!tenant.view(&moved, None).unwrap().is_error);
        // Paths of at most 1,024 bytes: 4 names of 210 below one of 210 do not fit.
        let long = format!("/{}", "n".repeat(210));
        tenant
            .create(&format!("/memories/c{}", long.repeat(4)), "x\n")
            .unwrap();
        let said = tenant
            .rename("/memories/c", &format!("/memories{long}/c"))
            .unwrap();
        assert!(refusal(&said).starts_with("Error: "), "{said:?}");
        assert!(!tenant.delete("/memories/b").unwrap().is_error);
        assert!(!tenant.delete("/memories/c").unwrap().is_error);
        assert_eq!(listing(&tenant), "0B\t/memories");
    });
}
