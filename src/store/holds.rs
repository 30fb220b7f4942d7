//! Adds and removes holds: entries of a list that is a directory of its own, see docs/ARCHITECTURE.md.

use crate::path::MemoryPath;
use crate::record::{Dirent, DirentBody, Hold, NodeId};

use super::StoreError;
use super::change::Change;

impl Change<'_> {
    /// Puts a hold on a path, in place of the one that may be on it. Holds that have ended
    /// leave the list, which every command reads.
    pub(crate) fn put_hold(&mut self, path: &MemoryPath, hold: Hold) -> Result<(), StoreError> {
        self.enter_top(self.reader.hold_list());
        for entry in self.reader.all_children(&self.reader.hold_list())? {
            if let DirentBody::Hold(hold) = &entry.body
                && hold.until.is_some_and(|until| until <= self.now)
            {
                let tag = self.crypto.name_tag(NodeId::HOLDS, &entry.name);
                let old = self.entry(NodeId::HOLDS, &entry.name)?;
                self.set_entry(NodeId::HOLDS, tag, old, None)?;
            }
        }
        let name = path.as_str();
        let old = self.entry(NodeId::HOLDS, name)?;
        let entry = Dirent {
            name: name.to_owned(),
            directory: NodeId::HOLDS,
            node: NodeId(self.random_id()?),
            body: DirentBody::Hold(hold),
        };
        let tag = self.crypto.name_tag(NodeId::HOLDS, name);
        self.set_entry(NodeId::HOLDS, tag, old, Some(entry))
    }

    /// Takes the hold off a path. Says whether there was one.
    pub(crate) fn remove_hold(&mut self, path: &MemoryPath) -> Result<bool, StoreError> {
        self.enter_top(self.reader.hold_list());
        let old = self.entry(NodeId::HOLDS, path.as_str())?;
        let was_there = old.is_some();
        let tag = self.crypto.name_tag(NodeId::HOLDS, path.as_str());
        self.set_entry(NodeId::HOLDS, tag, old, None)?;
        Ok(was_there)
    }
}
