//! Where a home agent's bindings outlive it: one file, an embedded database that is whole after any crash.
//!
//! A record is on the disk when [`BindingStore::save`] returns, so a reply never promises what a crash could take
//! back. A file that is damaged, or not ours, is refused with what to do about it. It is left as it is, unless the
//! database could make it whole without some of the latest changes: then it is refused once, so that somebody knows.

mod ipv6_record;
mod quiet;
mod record;
mod stored;

use std::fs::{self, File, OpenOptions};
use std::io;
use std::marker::PhantomData;
use std::os::unix::fs::{DirBuilderExt as _, OpenOptionsExt as _};
use std::panic::{self, AssertUnwindSafe};
use std::path::{Path, PathBuf};

use careof_mobility::{v4, v6};
use redb::{
    Database, DatabaseError, ReadableDatabase as _, ReadableTable as _, StorageError, TableDefinition,
    TableHandle as _,
};

use crate::{BindingStore, StoreError};

pub use stored::Stored;

/// What the file is, and in which edition it is written.
const ABOUT: TableDefinition<'_, &str, &str> = TableDefinition::new("about");

/// Records as they are written, each with the bits of its home address.
type Rows<Bits> = Vec<(Bits, Vec<u8>)>;

const CONTENT: &str = "content";
const OURS: &str = "careof: bindings of a home agent";
const EDITION: &str = "edition";
const PRESENT_EDITION: &str = "1";

/// A record is some hundred bytes.
const CACHE_BYTES: usize = 4 << 20;

/// Why a store cannot be opened.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("cannot use the store {path}: {problem}", path = .path.display())]
pub struct OpenError {
    /// The file.
    pub path: PathBuf,
    /// What is wrong with it.
    pub problem: String,
    /// What would help.
    pub remedy: Option<String>,
}

/// The bindings of a home agent of Mobile IPv4.
pub type Store = StoreOf<v4::MobileNodeRecord>;

/// The bindings of a home agent of Mobile IPv6.
pub type Ipv6Store = StoreOf<v6::MobileNodeRecord>;

/// A home agent's bindings in a file. Only one process can have it open.
#[derive(Debug)]
pub struct StoreOf<R: Stored> {
    path: PathBuf,
    /// `None` after a failure: the file is opened again when it is next needed.
    database: Option<Database>,
    records: PhantomData<fn() -> R>,
}

impl<R: Stored> StoreOf<R> {
    /// Opens the store in the file `path`, and makes file and directory if there are none.
    ///
    /// # Errors
    /// [`OpenError`]: no permission, in use by another process, damaged, of a later version, or another kind of file.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        let error =
            |problem: String, remedy: Option<String>| OpenError { path: path.to_owned(), problem, remedy };
        if !path.try_exists().map_err(|found| refused(path, &found))? {
            create::<R>(path).map_err(|failure| match failure {
                Failure::Io(found) => refused(path, &found),
                Failure::Database(problem) => error(problem, None),
            })?;
        }
        let whole = unharmed(|| {
            let mut database = open(path)?;
            check::<R>(&mut database, path)?;
            Ok(database)
        });
        let database = whole.unwrap_or_else(|what| Err(damaged(path, &what)))?;
        Ok(Self { path: path.to_owned(), database: Some(database), records: PhantomData })
    }

    /// The open database; after a failure it is opened anew, for the failed one takes no more transactions.
    fn database(&mut self) -> Result<&Database, StoreError> {
        if self.database.is_none() {
            let opened = unharmed(|| open(&self.path)).unwrap_or_else(|what| Err(damaged(&self.path, &what)));
            self.database = Some(opened.map_err(|error| StoreError(error.to_string()))?);
        }
        self.database.as_ref().ok_or_else(|| StoreError("the store is closed".to_owned()))
    }

    /// A database that is closed writes as well, and may find its file damaged. Who closes it has no use for that.
    fn close(&mut self) {
        let _ = unharmed(|| drop(self.database.take()));
    }

    fn failed(&mut self, doing: &str, error: &redb::Error) -> StoreError {
        self.close();
        StoreError(format!("cannot {doing} {}: {error}", self.path.display()))
    }
}

impl<R: Stored> Drop for StoreOf<R> {
    fn drop(&mut self) {
        self.close();
    }
}

impl<R: Stored> BindingStore<R> for StoreOf<R> {
    fn save(&mut self, record: &R) -> Result<(), StoreError> {
        self.save_all(std::slice::from_ref(record))
    }

    /// All of them or none.
    fn save_all(&mut self, records: &[R]) -> Result<(), StoreError> {
        let database = self.database()?;
        let saved = unharmed(|| {
            write::<R>(database, |nodes| {
                for record in records {
                    nodes.insert(record.bits(), record.encode().as_slice())?;
                }
                Ok(())
            })
        });
        saved
            .unwrap_or_else(|what| Err(redb::Error::Corrupted(what)))
            .map_err(|error| self.failed("write to", &error))
    }

    fn load(&mut self) -> Result<Vec<R>, StoreError> {
        let database = self.database()?;
        let read = unharmed(|| read::<R>(database)).unwrap_or_else(|what| Err(redb::Error::Corrupted(what)));
        let stored = read.map_err(|error| self.failed("read", &error))?;
        let decode = |(key, bytes): &(R::Bits, Vec<u8>)| {
            let home_address = R::shown(*key);
            let record = R::decode(bytes).and_then(|record| {
                let other = R::shown(record.bits());
                if other == home_address { Ok(record) } else { Err(format!("it is of {other}")) }
            });
            record.map_err(|error| {
                StoreError(format!(
                    "{}: the record of {home_address} is damaged: {error}",
                    self.path.display()
                ))
            })
        };
        stored.iter().map(decode).collect()
    }
}

/// What `work` returns, or what it panicked with: `redb` does on some files that are damaged where it has no check.
fn unharmed<T>(work: impl FnOnce() -> T) -> Result<T, String> {
    // What it was working on is closed in that case, and not looked at again.
    quiet::without_report(|| panic::catch_unwind(AssertUnwindSafe(work))).map_err(|cause| {
        let text = cause.downcast_ref::<String>().map(String::as_str);
        text.or_else(|| cause.downcast_ref::<&str>().copied()).unwrap_or("it cannot be read").to_owned()
    })
}

enum Failure {
    Io(io::Error),
    Database(String),
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// Makes an empty store. It gets its name when it is whole, so that a crash leaves none or a good one.
fn create<R: Stored>(path: &Path) -> Result<(), Failure> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    fs::DirBuilder::new().recursive(true).mode(0o700).create(directory)?;
    let mut unfinished = path.as_os_str().to_owned();
    unfinished.push(".new");
    let unfinished = PathBuf::from(unfinished);
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .create(true)
        .truncate(true)
        .mode(0o600)
        .open(&unfinished)?;
    let write = || -> Result<(), redb::Error> {
        let database = Database::builder().create_file(file)?;
        let transaction = database.begin_write()?;
        {
            let mut about = transaction.open_table(ABOUT)?;
            about.insert(CONTENT, OURS)?;
            about.insert(EDITION, PRESENT_EDITION)?;
            transaction.open_table(R::TABLE)?;
        }
        transaction.commit()?;
        Ok(())
    };
    write().map_err(|error| {
        // It may be what fills the disk.
        let _ = fs::remove_file(&unfinished);
        match error {
            redb::Error::Io(error) => Failure::Io(error),
            error => Failure::Database(error.to_string()),
        }
    })?;
    fs::rename(&unfinished, path)?;
    File::open(directory)?.sync_all()?;
    Ok(())
}

fn open(path: &Path) -> Result<Database, OpenError> {
    Database::builder().set_cache_size(CACHE_BYTES).open(path).map_err(|error| match error {
        DatabaseError::DatabaseAlreadyOpen => OpenError {
            path: path.to_owned(),
            problem: "another process uses it".to_owned(),
            remedy: Some(
                "give each home agent a configuration file of another name, or another [store] directory"
                    .into(),
            ),
        },
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == io::ErrorKind::InvalidData => {
            foreign(path)
        }
        DatabaseError::Storage(StorageError::Io(error)) if error.kind() == io::ErrorKind::UnexpectedEof => {
            damaged(path, "its end is missing")
        }
        DatabaseError::Storage(StorageError::Io(error)) => refused(path, &error),
        DatabaseError::Storage(StorageError::Corrupted(what)) => damaged(path, &what),
        other => OpenError { path: path.to_owned(), problem: other.to_string(), remedy: None },
    })
}

/// What the operating system refused.
fn refused(path: &Path, error: &io::Error) -> OpenError {
    let directory = path.parent().unwrap_or(Path::new("/")).display();
    let remedy = match error.kind() {
        io::ErrorKind::PermissionDenied => {
            Some(format!("ls -ld {directory} shows whose it is; [store] can name another"))
        }
        io::ErrorKind::StorageFull => {
            Some(format!("`df {directory}` shows who has the space; a store takes 1 MiB and more"))
        }
        io::ErrorKind::ReadOnlyFilesystem => {
            Some(format!("`findmnt -T {directory}` shows what it is; [store] can name another directory"))
        }
        io::ErrorKind::IsADirectory => Some("move it away, or name another [store] directory".to_owned()),
        _ => None,
    };
    OpenError { path: path.to_owned(), problem: error.to_string(), remedy }
}

fn foreign(path: &Path) -> OpenError {
    OpenError {
        path: path.to_owned(),
        problem: "it is no store of careof-agent".to_owned(),
        remedy: Some("move the file away, or name another [store] directory".to_owned()),
    }
}

fn damaged(path: &Path, what: &str) -> OpenError {
    let shown = path.display();
    OpenError {
        path: path.to_owned(),
        problem: format!("it is damaged: {what}"),
        remedy: Some(format!(
            "restore it from a backup, or `mv {shown} {shown}.damaged`: mobile nodes then have to register again, and \
             requests accepted within the replay window can be replayed"
        )),
    }
}

/// Whether the file is whole and ours.
fn check<R: Stored>(database: &mut Database, path: &Path) -> Result<(), OpenError> {
    match database.check_integrity() {
        Ok(true) => {}
        Ok(false) => {
            let problem = "it was damaged, and is whole again without some of the latest changes".to_owned();
            let remedy = "start the agent again to use what is left, or restore a backup".to_owned();
            return Err(OpenError { path: path.to_owned(), problem, remedy: Some(remedy) });
        }
        Err(error) => return Err(damaged(path, &error.to_string())),
    }
    let about = || -> Result<(Option<String>, Option<String>, bool), redb::Error> {
        let transaction = database.begin_read()?;
        let about = transaction.open_table(ABOUT)?;
        let value = |key| about.get(key).map(|found| found.map(|guard| guard.value().to_owned()));
        let has_table = transaction.list_tables()?.any(|table| table.name() == R::TABLE.name());
        Ok((value(CONTENT)?, value(EDITION)?, has_table))
    };
    match about() {
        Ok((Some(content), Some(edition), has_table)) if content == OURS => match edition.as_str() {
            PRESENT_EDITION if has_table => Ok(()),
            PRESENT_EDITION => Err(OpenError {
                path: path.to_owned(),
                problem: "it is of a home agent of the other version of IP".to_owned(),
                remedy: Some("move the file away, or name another [store] directory".to_owned()),
            }),
            later => Err(OpenError {
                path: path.to_owned(),
                problem: format!("it is of edition {later:?}, this program writes {PRESENT_EDITION:?}"),
                remedy: Some("use the version of careof-agent that wrote it, or a later one".to_owned()),
            }),
        },
        Ok(_) | Err(redb::Error::TableDoesNotExist(_) | redb::Error::TableTypeMismatch { .. }) => {
            Err(foreign(path))
        }
        Err(error) => Err(damaged(path, &error.to_string())),
    }
}

fn write<R: Stored>(
    database: &Database,
    change: impl FnOnce(&mut redb::Table<'_, R::Bits, &'static [u8]>) -> Result<(), redb::Error>,
) -> Result<(), redb::Error> {
    let mut transaction = database.begin_write()?;
    // So that a crash in the middle cannot lead to the state before the one that was promised.
    transaction.set_two_phase_commit(true);
    change(&mut transaction.open_table(R::TABLE)?)?;
    transaction.commit()?;
    Ok(())
}

/// All records, as they are written.
fn read<R: Stored>(database: &Database) -> Result<Rows<R::Bits>, redb::Error> {
    let nodes = database.begin_read()?.open_table(R::TABLE)?;
    let mut all = Vec::new();
    for entry in nodes.iter()? {
        let (key, value) = entry?;
        all.push((key.value(), value.value().to_vec()));
    }
    Ok(all)
}

#[cfg(test)]
mod tests;
