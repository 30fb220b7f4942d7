//! Behaviour of the engine as a whole; every shipped rule's examples are run here.

use super::*;

fn engine(packs: &[&str]) -> Engine {
    Engine::builder().packs(packs).build().unwrap()
}

#[test]
fn every_example_of_every_pack_holds() {
    let engine = engine(PACKS);
    engine.compile_all().unwrap();
    let fallen = engine.check_examples();
    let list: Vec<String> = fallen.iter().map(ToString::to_string).collect();
    assert!(list.is_empty(), "{} fall:\n{}", list.len(), list.join("\n"));
}
