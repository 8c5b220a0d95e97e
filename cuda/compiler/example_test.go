package compiler_test

import (
	"fmt"

	"fspda/cuda/compiler"
	"fspda/model"
)

// A gradient in bf16 rounds the parameters, the batch and the gradient of the logits for the
// products that read them.
func ExampleCompile() {
	net, err := model.MLP(model.MLPOptions{Inputs: 4, Classes: 2})
	if err != nil {
		fmt.Println(err)
		return
	}
	plan, err := net.Plan(3, model.Train)
	if err != nil {
		fmt.Println(err)
		return
	}
	p, err := compiler.Compile(plan.Code(), compiler.Options{Precision: compiler.BF16})
	if err != nil {
		fmt.Println(err)
		return
	}
	for _, t := range p.Tasks {
		fmt.Printf("%s: %d in, %d out\n", t.Title(), len(t.In), len(t.Out))
	}
	// Output:
	// rounding the parameters: 0 in, 0 out
	// linear (fc1): 1 in, 1 out
	// linear (fc1): 3 in, 1 out
	// softmax-cross-entropy (loss): 2 in, 2 out
	// linear-grad-w (fc1): 1 in, 1 out
	// linear-grad-w (fc1): 2 in, 2 out
}
