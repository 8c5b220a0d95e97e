package queuecmd_test

import (
	"fmt"
	"os"
	"path/filepath"

	"fspda/cli/queuecmd"
)

// A queue of two commands; the second runs first.
func ExampleReadFile() {
	dir, err := os.MkdirTemp("", "queue")
	if err != nil {
		fmt.Println(err)
		return
	}
	defer os.RemoveAll(dir)
	path := filepath.Join(dir, "evidence.yaml")
	text := "tasks:\n- {name: steps, command: figure 9}\n" +
		"- {name: seeds, priority: 2, command: [figure, 5, --seeds, 3], cores: 2}\n"
	if err := os.WriteFile(path, []byte(text), 0o644); err != nil {
		fmt.Println(err)
		return
	}
	q, err := queuecmd.ReadFile(path)
	if err != nil {
		fmt.Println(err)
		return
	}
	fmt.Println(q.Folder)
	for _, t := range q.Tasks {
		fmt.Println(t.Name, t.Priority, t.Cores, t.Command)
	}
	// Output:
	// runs/queue-evidence
	// steps 0 1 [figure 9]
	// seeds 2 2 [figure 5 --seeds 3]
}
