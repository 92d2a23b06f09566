//! PostgreSQL server for one test process: Debian's binaries, a folder under /tmp, a Unix socket. It ends with the
//! test process, even if that is killed, because a shell waits until the other end of a pipe closes.

use std::fs;
use std::io::{BufRead as _, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, Ordering};

use sqlx::postgres::{PgConnectOptions, PgConnection};
use sqlx::{AssertSqlSafe, ConnectOptions as _};

/// Shell script that runs PostgreSQL until standard input ends. `$1` is the folder, `$2` the folder of the binaries.
const POSTGRES: &str = r#"
set -e
"$2/initdb" --pgdata="$1/data" --username=admin --auth=trust --encoding=UTF8 --locale=C \
    --no-sync >"$1/log" 2>&1
"$2/postgres" -D "$1/data" -k "$1" -c listen_addresses= -c fsync=off -c max_connections=300 \
    -c log_min_messages=error >>"$1/log" 2>&1 &
server=$!
until "$2/pg_isready" -q -h "$1"; do kill -0 $server; sleep 0.05; done
echo ready
cat >/dev/null
kill -QUIT $server
wait $server || true
rm -rf "$1"
"#;

const POOLER: &str = r#"
set -e
"$2" "$1/pgbouncer.ini" >"$1/pooler.log" 2>&1 &
server=$!
until [ -S "$1/.s.PGSQL.6432" ]; do kill -0 $server; sleep 0.05; done
echo ready
cat >/dev/null
kill -INT $server
"#;

const MISSING: &str = "\
PostgreSQL is needed for the tests of the shared store: tests/ci/postgres.sh installs it (Debian: \
`apt-get install postgresql pgbouncer`)";

/// Database servers of this process.
pub(in super::super) struct Cluster {
    folder: PathBuf,
    databases: AtomicU32,
    /// Server process. Its standard input closes when this process ends.
    _postgres: Child,
    _pooler: Child,
}

/// Database whose owner is bound by row-level security.
pub(in super::super) struct Database {
    /// URL for the owner.
    pub(in super::super) url: String,
    /// URL for the superuser.
    pub(in super::super) admin_url: String,
    /// URL for the owner, through the pooler.
    pub(in super::super) pooled_url: String,
    pub(in super::super) name: String,
}

impl Cluster {
    /// Returns the only cluster of the process, and starts it on first use.
    pub(in super::super) fn get() -> &'static Self {
        static CLUSTER: OnceLock<Cluster> = OnceLock::new();
        CLUSTER.get_or_init(Self::start)
    }

    /// Creates an empty database.
    pub(in super::super) async fn database(&self) -> Database {
        let name = format!("t{}", self.databases.fetch_add(1, Ordering::Relaxed));
        let mut admin = connect(&self.url("admin", "postgres", "")).await;
        let create = format!("CREATE DATABASE {name} OWNER toolgate TEMPLATE template0");
        run(&mut admin, &create).await;
        Database {
            url: self.url("toolgate", &name, ""),
            admin_url: self.url("admin", &name, ""),
            pooled_url: self.url("toolgate", &name, "&port=6432"),
            name,
        }
    }

    fn url(&self, user: &str, database: &str, more: &str) -> String {
        format!("postgres://{user}@localhost/{database}?host={}{more}", self.folder.display())
    }

    fn start() -> Self {
        let binaries = binaries().expect(MISSING);
        let folder = tempfile::Builder::new().prefix("tgpg-").tempdir_in("/tmp");
        let folder = folder.expect("a folder").keep();
        let identity = unprivileged();
        if let Some((user, group)) = identity {
            std::os::unix::fs::chown(&folder, Some(user), Some(group)).expect("an owner");
        }
        let postgres = attend(POSTGRES, &folder, &binaries, identity);
        let roles = "CREATE ROLE toolgate LOGIN; CREATE ROLE reader LOGIN";
        let made = Command::new(binaries.join("psql"))
            .args(["-q", "-h", folder.to_str().expect("a path"), "-U", "admin", "-d", "postgres"])
            .args(["-c", roles])
            .status();
        assert!(made.expect("psql").success(), "roles");
        let pooler = which("pgbouncer").expect(MISSING);
        let settings = format!(
            "[databases]\n* = host={0}\n[pgbouncer]\nunix_socket_dir = {0}\nlisten_port = 6432\n\
             listen_addr =\nauth_type = trust\nauth_file = {0}/users\npool_mode = transaction\n\
             default_pool_size = 4\nmax_client_conn = 500\n",
            folder.display()
        );
        fs::write(folder.join("pgbouncer.ini"), settings).expect("settings");
        fs::write(folder.join("users"), "\"toolgate\" \"\"\n\"admin\" \"\"\n").expect("users");
        let pooler = attend(POOLER, &folder, &pooler, identity);
        Self { folder, databases: AtomicU32::new(0), _postgres: postgres, _pooler: pooler }
    }
}

/// Starts a script and waits until it reports that its program is ready.
fn attend(script: &str, folder: &Path, program: &Path, identity: Option<(u32, u32)>) -> Child {
    use std::os::unix::process::CommandExt as _;
    let mut command = Command::new("/bin/sh");
    command.args(["-c", script, "sh"]).arg(folder).arg(program).current_dir("/");
    command.stdin(Stdio::piped()).stdout(Stdio::piped());
    if let Some((user, group)) = identity {
        command.uid(user).gid(group);
    }
    let mut child = command.spawn().expect("a shell");
    let mut said = String::new();
    let output = child.stdout.take().expect("its output");
    BufReader::new(output).read_line(&mut said).expect("a line");
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    assert_eq!(said.trim(), "ready", "{log}");
    child
}

/// Returns the folder of Debian's newest PostgreSQL, or of the one on the path.
fn binaries() -> Option<PathBuf> {
    let version = |path: &PathBuf| -> Option<u32> { path.file_name()?.to_str()?.parse().ok() };
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let newest = versions.map(|entry| entry.path()).max_by_key(version).map(|p| p.join("bin"));
    newest.or_else(|| which("initdb").and_then(|path| path.parent().map(Path::to_owned)))
}

fn which(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<_> = std::env::split_paths(&path).collect();
    folders.push("/usr/sbin".into());
    folders.into_iter().map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Returns the user and group to run the servers as if this process is root, because neither server runs as root.
fn unprivileged() -> Option<(u32, u32)> {
    let users = fs::read_to_string("/etc/passwd").expect("the users");
    let me = fs::metadata("/proc/self").expect("this process");
    if std::os::unix::fs::MetadataExt::uid(&me) != 0 {
        return None;
    }
    let of = |name: &str| {
        let line = users.lines().find(|line| line.starts_with(&format!("{name}:")))?;
        let mut numbers = line.split(':').skip(2).map(str::parse);
        Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
    };
    of("postgres").or_else(|| of("nobody")).map(Some).expect("a user")
}

pub(in super::super) async fn connect(url: &str) -> PgConnection {
    let options: PgConnectOptions = url.parse().expect("a URL");
    options.connect().await.expect("a connection")
}

/// Runs statements one by one, outside of any transaction of the tests.
pub(in super::super) async fn run(connection: &mut PgConnection, sql: &str) -> u64 {
    let done = sqlx::raw_sql(AssertSqlSafe(sql)).execute(connection).await;
    done.unwrap_or_else(|error| panic!("{sql}: {error}")).rows_affected()
}
