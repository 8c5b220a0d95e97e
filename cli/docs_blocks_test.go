//go:build !windows

package cli

import (
	"bytes"
	"context"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"fspda/cli/command"
	"fspda/docs"
)

// notRun begins a block of commands that no test can run, and says why.
const notRun = "# not run by the tests: "

// onMachine begins a block of commands for one of two machines. TestTwoMachines runs those.
const onMachine = "# on the "

// Commands of the manual run with these additional arguments, which make them short; the last of
// equal flags counts. Otherwise each page's commands run unchanged, in a shell.
var shorter = map[string][]string{
	"train": {"--iterations", "12", "--epochs", "0", "--eval-points", "2", "--eval-epochs", "0", "--data-train",
		"800", "--data-test", "50", "--batch", "8", "--warmup", "0.01"},
	"agent": {"--iterations", "12", "--eval-points", "2", "--data-train", "800", "--data-test", "50", "--batch", "8"},
	"up":    {"--iterations", "12", "--eval-points", "2", "--data-train", "800", "--data-test", "50", "--batch", "8"},
	"figure": {"--scale", "0.0001", "--retune", "--data", "synthetic", "--set", "data_train=300", "--set",
		"data_test=50", "--set", "hidden=4", "--set", "batch=8", "--eval-points", "4"},
	"figure list": {"--no-time"},
	"figure 9":    {}, // trains nothing
	"figure methods": {"--only", "d2", "--data", "synthetic", "--set", "data_train=300", "--set",
		"data_test=50", "--set", "hidden=4", "--set", "iterations=10", "--set", "eval_points=2"},
	"figure low-communication": {"--only", "fspda-sa", "--data", "synthetic", "--set", "data_train=300", "--set",
		"data_test=50", "--set", "hidden=4", "--set", "iterations=10", "--set", "eval_points=2"},
	"bench step":    {"--data-train", "600", "--batch", "8", "--time", "5ms"},
	"bench kernels": {"--filter", "256×10×100", "--each", "1ms"},
	"bench network": {"--model", "resnet20", "--batch", "1"},
	"bench load":    {"--jobs", "1"},
}

// briefly runs the program with the arguments above. A command that serves takes a free port and
// ends after one answer.
func briefly(args []string) int {
	name := args[0]
	if len(args) > 1 && shorter[name+" "+args[1]] != nil {
		name += " " + args[1]
	}
	if slices.Contains(args, "--help") {
		name = ""
	}
	args = append(slices.Clone(args), shorter[name]...)
	if name == "train" && !slices.Contains(args, "cosine") {
		args = without(args, "--warmup")
	}
	args = without(args, "--warmup-iterations") // longer than so short a run
	if i := slices.Index(args, "--data"); i >= 0 && slices.Contains([]string{"imagenet", "folder"}, args[i+1]) {
		args = without(without(args, "--data-train"), "--data-test")
	}
	if i := slices.Index(args, "--data-dir"); i >= 0 { // what is drawn takes the place of what would have to be fetched
		switch {
		case args[0] == "figure" || slices.Contains(args, "mnist"):
			args = append(slices.Delete(args, i, i+2), "--data", "synthetic")
		case slices.Contains(args, "cifar10"):
			args = append(slices.Delete(args, i, i+2), "--data", "synthetic-images", "--crop", "16", "--data-train",
				"60", "--data-test", "10", "--agents", "2", "--partition", "shuffled", "--batch", "2", "--iterations",
				"2", "--eval-points", "1", "--eval-test", "0")
		}
	}
	// as many agents as so few examples are enough for
	if slices.Contains(args, "1000") && args[0] == "train" && slices.Contains(args, "--agents") {
		args = append(args, "--agents", "40")
	}
	if args[0] == "train" && slices.Contains(args, "resnet50") {
		args = append(args, "--model", "resnet20", "--crop", "16", "--agents", "2", "--partition", "shuffled",
			"--batch", "2", "--iterations", "2", "--eval-points", "1")
	}
	for i, a := range args {
		if strings.HasPrefix(a, ":80") {
			args[i] = "127.0.0.1:0"
		}
	}
	if args[0] == "web" && !slices.Contains(args, "--listen") {
		args = append(args, "--listen", "127.0.0.1:0")
	}
	if args[0] != "web" && !slices.Contains(args, "--listen") {
		return Run(context.Background(), args, os.Stdout, os.Stderr)
	}
	ctx, stop := context.WithCancel(context.Background())
	return Run(ctx, args, visitor{stop}, os.Stderr)
}

// without leaves a flag and its value out.
func without(args []string, flag string) []string {
	if i := slices.Index(args, flag); i >= 0 {
		return slices.Delete(args, i, i+2)
	}
	return args
}

// visitor requests the page whose address is written to it, then stops the program.
type visitor struct{ stop context.CancelFunc }

func (v visitor) Write(b []byte) (int, error) {
	url := regexp.MustCompile(`http://\S+`).Find(b)
	if url == nil {
		return len(b), nil
	}
	go func() {
		defer v.stop()
		r, err := http.Get(string(url))
		if err != nil || r.StatusCode != http.StatusOK {
			fmt.Fprintln(os.Stderr, "the page does not open:", err)
			os.Exit(command.ExitFailed)
		}
		r.Body.Close()
	}()
	return len(b), nil
}

// newWorkspace makes a folder in which the commands of a page can run: programs fspda and go in its
// PATH, the images and configuration files that pages name, and a home folder.
func newWorkspace(t *testing.T) (dir string, env []string) {
	t.Helper()
	dir = t.TempDir()
	write := func(name, text string, mode os.FileMode) {
		path := filepath.Join(dir, name)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte(text), mode); err != nil {
			t.Fatal(err)
		}
	}
	self, err := filepath.Abs(os.Args[0])
	if err != nil {
		t.Fatal(err)
	}
	write("bin/fspda", "#!/bin/sh\nexec env FSPDA_TEST_AS_PROGRAM=briefly '"+self+"' \"$@\"\n", 0o755)
	write("bin/go", `#!/bin/sh
case "$1 $2" in
"run ./cmd/fspda") shift 2; exec fspda "$@";;
"build "*)
	while [ $# -gt 2 ] && [ "$1" != -o ]; do shift; done
	[ "$3" = ./cmd/fspda ] && exec touch "$2";;
esac
echo "the test has no go $*" >&2; exit 1
`, 0o755)
	installSlurm(t, filepath.Join(dir, "bin"))
	job, err := os.ReadFile("../deploy/slurm.sh")
	if err != nil {
		t.Fatal(err)
	}
	write("deploy/slurm.sh", string(job), 0o644)
	write("run.yaml", "density: 0.2\n", 0o644)
	home, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	write("my_model.py", fmt.Sprintf("import runpy, sys\nsys.path.insert(0, %q)\nsys.argv = ['my_model.py', '6']\n"+
		"runpy.run_path(%q, run_name='__main__')\n", filepath.Join(home, "python"),
		filepath.Join(home, "model/external/testdata/mlp.py")), 0o644)
	for _, name := range []string{"home/imagenet/train/cat", "home/imagenet/train/dog", "home/imagenet/val/cat",
		"home/imagenet/val/dog"} {
		for k := range 6 {
			write(fmt.Sprintf("%s/%d.png", name, k), drawn(t, k), 0o644)
		}
	}
	if err := os.Symlink("home/imagenet", filepath.Join(dir, "DIR")); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink("runs/fspda-sa-synthetic-1", filepath.Join(dir, "RUN")); err != nil {
		t.Fatal(err)
	}
	return dir, append(os.Environ(), "HOME="+filepath.Join(dir, "home"),
		"PATH="+filepath.Join(dir, "bin")+":/usr/bin:/bin")
}

// drawn returns a small image as PNG.
func drawn(t *testing.T, k int) string {
	t.Helper()
	p := image.NewRGBA(image.Rect(0, 0, 40, 36))
	for i := range p.Pix {
		p.Pix[i] = byte(i * (k + 3))
	}
	p.Set(k, k, color.White)
	var b bytes.Buffer
	if err := png.Encode(&b, p); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

// namedFile matches blocks of a page that are files: their first line is a comment with the name.
var namedFile = regexp.MustCompile("(?s)```yaml\n# ([a-z]+\\.yaml)\n(.*?)```")

// Every block of commands of README and manual runs in a shell, in the order of its page,
// shortened; blocks that no test can run say so and why. The first page for newcomers always runs,
// the others with FSPDA_LONG=1.
func TestBlocksOfDocs(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	pages := map[string]string{}
	files := map[string]string{}
	for _, p := range docs.Pages() {
		pages[p.Name] = p.Text
		for _, m := range namedFile.FindAllStringSubmatch(p.Text, -1) {
			files[m[1]] = regexp.MustCompile(`iterations: \d+`).ReplaceAllString(strings.Replace(m[2], "samples: 8",
				"samples: 1", 1), "iterations: 12, data_train: 800, data_test: 50, batch: 8")
		}
	}
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	pages["README"] = string(readme)
	for name, text := range pages {
		blocks := commandBlock.FindAllStringSubmatch(text, -1)
		if name != "start" && os.Getenv("FSPDA_LONG") == "" || len(blocks) == 0 {
			continue
		}
		t.Run(name, func(t *testing.T) {
			dir, env := newWorkspace(t)
			for file, content := range files {
				if err := os.WriteFile(filepath.Join(dir, file), []byte(content), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			for _, m := range blocks {
				if why, ok := strings.CutPrefix(m[1], notRun); ok {
					why, _, _ = strings.Cut(why, "\n")
					t.Logf("not run: %s", why)
					continue
				}
				if strings.HasPrefix(m[1], onMachine) {
					continue
				}
				runBlock(t, dir, env, m[1])
			}
		})
	}
}

// runBlock runs a block in a shell that ends at the first command that fails.
func runBlock(t *testing.T, dir string, env []string, block string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 4*time.Minute)
	defer cancel()
	if strings.Contains(block, "--resume") { // goes on with a run that has made all but its end
		block = "fspda train --quiet\nrm runs/*/summary.json\n" + block
	}
	cmd := exec.CommandContext(ctx, "sh", "-e", "-c", block)
	cmd.Dir, cmd.Env, cmd.Stdin = dir, env, strings.NewReader("")
	cmd.WaitDelay = time.Second // what the shell has left behind holds its output open
	out, err := cmd.CombinedOutput()
	if err != nil {
		t.Errorf("%v in\n%s\n%s", err, block, out[max(0, len(out)-3000):])
	}
}
