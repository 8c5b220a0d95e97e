package cuda

import (
	"context"
	"math"
	"os"
	"testing"

	"fspda/cuda/executor"
	"fspda/data"
	"fspda/internal/testing/fakegpu"
	"fspda/model"
	"fspda/train"
)

// Agents take the forecast memory of a GPU, within five percent. Every block of the driver is
// counted, and nothing is computed. FSPDA_LONG=1 has eight agents of two networks, else five of one.
func TestMemoryForecast(t *testing.T) {
	checkForecast(t, "resnet18", BF16, 64, 8, 5)
	if os.Getenv("FSPDA_LONG") != "" {
		checkForecast(t, "resnet18", BF16, 64, 8, 8)
		for _, precision := range []Precision{FP32, FP16, BF16} {
			checkForecast(t, "resnet50", precision, 224, 32, 8)
		}
	}
}

func checkForecast(t *testing.T, network string, precision Precision, crop, batch, agents int) {
	d, _ := openFake(t, fakegpu.Options{CountOnly: true, Memory: 80 << 30}, false, WithPrecision(precision))
	set, err := data.SyntheticImages(data.SyntheticImagesOptions{Train: agents * batch, Test: 16},
		data.ImageOptions{Crop: crop})
	if err != nil {
		t.Fatal(err)
	}
	net, err := model.Open(network, model.Options{Shape: set.Shape, Classes: set.Classes})
	if err != nil {
		t.Fatal(err)
	}
	m, c := model.NewEngine(net, d), train.Default()
	c.Agents, c.Partition, c.Batch, c.Iterations, c.EvalPoints = agents, "shuffled", batch, 4, 1
	c.Checkpoint, c.Precision = 0, string(precision)
	s, err := c.Resolve(set, m)
	if err != nil {
		t.Fatal(err)
	}
	res, err := train.Run(context.Background(), s, train.Options{Device: d, Model: m})
	if err != nil {
		t.Fatal(err)
	}
	if len(res.Memory) != 1 || res.Memory[0].Taken == 0 {
		t.Fatalf("compared: %+v", res.Memory)
	}
	memory := res.Memory[0]
	class := executor.SizeClass
	if memory.Opened != uint64(class(blasWorkspace)+class(executor.MediumBytes)+class(4)) {
		t.Errorf("opening took %d bytes, want the workspace of cuBLAS and the megakernel's list", memory.Opened)
	}
	sum := uint64(0)
	for _, p := range memory.Parts {
		sum += p.Bytes
		t.Logf("%-40s %8.1f MB", p.What, float64(p.Bytes)/1e6)
	}
	if sum != memory.Need {
		t.Errorf("parts of %d bytes together, want %d", sum, memory.Need)
	}
	// the fake driver and libraries take no memory
	got, want := float64(memory.Taken), float64(memory.Need-estimate(agents*2+2))
	t.Logf("%s in %s: forecast %.1f MB, taken %.1f MB", network, precision, want/1e6, got/1e6)
	if math.Abs(got/want-1) > 0.05 {
		t.Errorf("off by %.1f %%", 100*(got/want-1))
	}
}
