//go:build !windows

package cli

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
)

// slurm are fake Slurm programs, as far as deploy/slurm.sh needs them: tasks are processes, and
// requeueing a job creates a file of that name.
var slurm = map[string]string{
	"sbatch": `#!/bin/sh
nodes=1 each=1
while :; do
	case "$1" in
	--nodes) nodes=$2;;
	--ntasks-per-node) each=$2;;
	*) break;;
	esac
	shift 2
done
export SLURM_NTASKS=$((nodes * each)) SLURM_JOB_ID=$$ SLURM_JOB_NODELIST=here
exec bash "$@"
`,
	"srun": `#!/bin/sh
if [ "$1" = --label ]; then
	shift
	i=0
	while [ $i -lt $SLURM_NTASKS ]; do
		echo "$i: $(SLURMD_NODENAME=127.0.0.1 "$@")"
		i=$((i + 1))
	done
	exit
fi
while case "$1" in --*) true;; *) false;; esac; do shift; done
trap 'kill -USR1 $tasks' USR1
i=0
while [ $i -lt $SLURM_NTASKS ]; do
	SLURM_PROCID=$i "$@" & tasks="$tasks $!"
	i=$((i + 1))
done
worst=0
for task in $tasks; do
	wait $task; status=$?
	while [ $status -gt 128 ] && kill -0 $task 2>/dev/null; do wait $task; status=$?; done
	[ $status -gt $worst ] && worst=$status
done
exit $worst
`,
	"scontrol": `#!/bin/sh
case "$1 $2" in
requeue*) touch requeued;;
*) exit 1;;
esac
`,
}

// installSlurm writes these programs into a folder.
func installSlurm(t *testing.T, bin string) {
	t.Helper()
	for name, text := range slurm {
		if err := os.MkdirAll(bin, 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(bin, name), []byte(text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
}

// slurmJob returns the configuration of a run of two agents, and a function that submits it as a
// job of two tasks in a folder.
func slurmJob(t *testing.T, dir string, iterations int) (config string, submit func() (*exec.Cmd, *output)) {
	t.Helper()
	installSlurm(t, filepath.Join(dir, "bin"))
	script, err := filepath.Abs("../deploy/slurm.sh")
	if err != nil {
		t.Fatal(err)
	}
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	config = filepath.Join(dir, "run.yaml")
	if err := os.WriteFile(config, fmt.Appendf(nil, "agents: 2\ndata_train: 200\ndata_test: 50\nhidden: [6]\nbatch: "+
		"8\niterations: %d\neval_points: 3\ngradient_time: 0.01\n", iterations), 0o644); err != nil {
		t.Fatal(err)
	}
	return config, func() (*exec.Cmd, *output) {
		cmd, out := exec.Command(filepath.Join(dir, "bin", "sbatch"), "--ntasks-per-node", "2", script,
			config), &output{}
		cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
		cmd.Env = append(os.Environ(), "FSPDA="+self, "FSPDA_TEST_AS_PROGRAM=1",
			"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = cmd.Process.Kill() })
		return cmd, out
	}
}

// An agent of a job that is killed is started again, and the run equals that of one process.
func TestSlurmTaskDies(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("skipped: no bash")
	}
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	config, job := slurmJob(t, dir, 300)
	cmd, out := job()
	out.find(t, `("msg":"evaluation".*"iteration":100)`)
	killed := 0
	folders, _ := filepath.Glob("/proc/[0-9]*/cmdline")
	for _, f := range folders {
		line, _ := os.ReadFile(f)
		vars, _ := os.ReadFile(filepath.Join(filepath.Dir(f), "environ"))
		if !strings.HasPrefix(string(line), os.Args[0]) || !strings.Contains(string(line), config) ||
			!strings.Contains(string(vars), "SLURM_PROCID=1\x00") {
			continue
		}
		if pid, err := strconv.Atoi(filepath.Base(filepath.Dir(f))); err == nil {
			killed++
			_ = syscall.Kill(pid, syscall.SIGKILL)
		}
	}
	if folders == nil {
		t.Skip("skipped: no /proc, by which the process is found")
	}
	if killed != 1 {
		t.Errorf("%d processes were killed, want 1", killed)
	}
	if err := cmd.Wait(); err != nil || strings.Count(out.String(), `"msg":"agent"`) != 3 {
		t.Fatalf("%v; want three starts of two agents\n%s", err, out)
	}
	one := filepath.Join(dir, "one")
	if status, _, stderr := call(t, "train", "--quiet", "-c", config, "--out", one); status != 0 {
		t.Fatal(stderr)
	}
	sameRun(t, one, filepath.Join(dir, "runs", "fspda"))
}

// A job of two tasks that is warned of its time limit writes checkpoints and requeues itself, and
// the run equals that of one process.
func TestSlurmJob(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("skipped: no bash")
	}
	t.Parallel() // it mostly waits
	dir := t.TempDir()
	config, job := slurmJob(t, dir, 60)
	first, out := job()
	out.find(t, `("msg":"evaluation".*"iteration":20)`)
	_ = first.Process.Signal(syscall.SIGUSR1)
	if err := first.Wait(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	if _, err := os.Stat(filepath.Join(dir, "requeued")); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	again, out := job()
	if err := again.Wait(); err != nil || !strings.Contains(out.String(), "resuming") {
		t.Fatalf("%v\n%s", err, out)
	}
	one := filepath.Join(dir, "one")
	if status, _, stderr := call(t, "train", "--quiet", "-c", config, "--out", one); status != 0 {
		t.Fatal(stderr)
	}
	sameRun(t, one, filepath.Join(dir, "runs", "fspda"))
}

// A job whose agents have failed is requeued, until that was tried five times; bad input ends it.
func TestSlurmRequeuesAfterFailure(t *testing.T) {
	if _, err := exec.LookPath("bash"); err != nil {
		t.Skip("skipped: no bash")
	}
	t.Parallel() // it mostly waits
	for name, c := range map[string]struct {
		status, restarts string
		requeued         bool
	}{"failed": {"1", "0", true}, "too often": {"1", "5", false}, "bad input": {"2", "0", false},
		"a full disk": {"4", "1", false}, "done": {"0", "0", false}} {
		dir := t.TempDir()
		installSlurm(t, filepath.Join(dir, "bin"))
		script, err := filepath.Abs("../deploy/slurm.sh")
		if err != nil {
			t.Fatal(err)
		}
		for file, text := range map[string]string{"bin/fspda": "#!/bin/sh\n[ $1 = certs ] || exit " + c.status + "\n" +
			"while [ $1 != --out ]; do shift; done; mkdir -p $2; touch $2/ca-key.pem $2/ca.pem\n",
			"bin/sleep": "#!/bin/sh\n", "run.yaml": "agents: 2\n"} {
			if err := os.WriteFile(filepath.Join(dir, file), []byte(text), 0o755); err != nil {
				t.Fatal(err)
			}
		}
		cmd := exec.Command(filepath.Join(dir, "bin", "sbatch"), "--ntasks-per-node", "2", script, "run.yaml")
		cmd.Dir = dir
		cmd.Env = append(os.Environ(), "FSPDA=fspda", "SLURM_RESTART_COUNT="+c.restarts,
			"PATH="+filepath.Join(dir, "bin")+":"+os.Getenv("PATH"))
		text, err := cmd.CombinedOutput()
		_, missing := os.Stat(filepath.Join(dir, "requeued"))
		if requeued := missing == nil; requeued != c.requeued || (err == nil) != (requeued || c.status == "0") {
			t.Errorf("%s: requeued %v, %v\n%s", name, requeued, err, text)
		}
	}
}
