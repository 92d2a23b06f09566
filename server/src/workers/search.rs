//! Search for the GPUs that work. Processes of their own look for them: a driver that hangs, or that ends the process, takes
//! no server with it.

use std::ffi::OsString;
use std::io;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use tokio::io::AsyncReadExt as _;
use tokio::process::Command;
use tokio::time::Instant;
use toolgate_encoder::{Device, GpuList};

use super::command::{SUBCOMMAND, VISIBLE_GPUS, is_uuid};

/// Longest time for the whole search. A driver that nothing keeps loaded takes seconds for each GPU.
const SEARCH_MAX: Duration = Duration::from_secs(60);

/// Most bytes of a process's answer.
const ANSWER_MAX: u64 = 64 * 1024;

/// Most GPUs that are looked for by their UUIDs.
const LISTED_MAX: usize = 64;

/// GPUs that work, and why others don't.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct FoundGpus {
    /// Those that work.
    pub usable: Vec<Device>,
    /// Reasons that others can't be used, or that none can, in words.
    pub problems: Vec<String>,
}

/// One process that looks for GPUs.
pub(super) struct Search {
    /// Path of the program.
    pub(super) program: PathBuf,
    /// Arguments of the program.
    pub(super) arguments: Vec<OsString>,
    /// The only GPU that the process sees, by its UUID; `None` for all that this process sees.
    pub(super) gpu: Option<String>,
}

impl FoundGpus {
    /// Finds the GPUs that work. `visible` is the value of [`VISIBLE_GPUS`]: where it lists GPUs by UUID, each is looked at
    /// alone, because CUDA shows a process no more than one slice (MIG).
    pub async fn search(visible: Option<&str>) -> Self {
        // This program, and no other that lies beside it: one of another version may know no such search.
        let program = match std::env::current_exe() {
            Ok(program) => program,
            Err(error) => return Self { problems: vec![error.to_string()], ..Self::default() },
        };
        let search = |gpu: Option<&str>| Search {
            program: program.clone(),
            arguments: [SUBCOMMAND, "--find-gpus"].map(Into::into).into(),
            gpu: gpu.map(str::to_owned),
        };
        let listed: Vec<&str> = visible.unwrap_or_default().split(',').map(str::trim).collect();
        let searches = if listed.iter().all(|one| is_uuid(one)) {
            listed.into_iter().take(LISTED_MAX).map(|gpu| search(Some(gpu))).collect()
        } else {
            vec![search(None)]
        };
        Self::by(searches, SEARCH_MAX).await
    }

    /// Runs the searches one after the other, all within `within`. The GPU of a search for a single one has the number of
    /// its search.
    pub(super) async fn by(searches: Vec<Search>, within: Duration) -> Self {
        let until = Instant::now() + within;
        let mut found = Self::default();
        for (index, search) in searches.into_iter().enumerate() {
            let list = tokio::time::timeout_at(until, search.run()).await.unwrap_or_else(|_| {
                GpuList::none(format!("NVIDIA's driver did not answer within {within:?}"))
            });
            found.add(index, search.gpu.as_deref(), list);
        }
        found
    }

    fn add(&mut self, index: usize, gpu: Option<&str>, list: GpuList) {
        match gpu {
            Some(gpu) => {
                let is_usable = !list.usable.is_empty();
                self.usable.extend(is_usable.then_some(Device::Cuda(index)));
                self.problems.extend(list.problems.iter().map(|why| format!("{gpu}: {why}")));
            }
            None => {
                self.usable.extend(list.usable.into_iter().map(Device::Cuda));
                self.problems.extend(list.problems);
            }
        }
    }
}

impl Search {
    /// Runs the process to its end. One that fails has found no GPU, for the reason that it failed.
    async fn run(&self) -> GpuList {
        let answer = self.answer().await;
        answer.unwrap_or_else(|error| GpuList::none(format!("the search for GPUs failed: {error}")))
    }

    async fn answer(&self) -> io::Result<GpuList> {
        let mut command = Command::new(&self.program);
        command.args(&self.arguments).kill_on_drop(true);
        if let Some(gpu) = &self.gpu {
            command.env(VISIBLE_GPUS, gpu);
        }
        command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = command.spawn()?;
        let mut answer = Vec::new();
        if let Some(stdout) = child.stdout.take() {
            stdout.take(ANSWER_MAX).read_to_end(&mut answer).await?;
        }
        let status = child.wait().await?;
        if !status.success() {
            return Err(io::Error::other(format!("it ended with {status}")));
        }
        Ok(serde_json::from_slice(&answer)?)
    }
}
