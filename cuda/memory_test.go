package cuda

import (
	"context"
	"math"
	"os"
	"testing"

	"fspda/cuda/driver/fakegpu"
	"fspda/cuda/executor"
	"fspda/data"
	"fspda/model"
	"fspda/train"
)

// Eight agents take of a GPU what was forecast, within five percent: every block that the driver
// gives is counted, and nothing is computed.
func TestMemoryForecast(t *testing.T) {
	checkForecast(t, "resnet18", BF16, 64, 8)
	if os.Getenv("FSPDA_LONG") != "" {
		for _, precision := range []Precision{FP32, FP16, BF16} {
			checkForecast(t, "resnet50", precision, 224, 32)
		}
	}
}

func checkForecast(t *testing.T, network string, precision Precision, crop, batch int) {
	d, _ := openFake(t, fakegpu.Options{CountOnly: true, Memory: 80 << 30}, false, WithPrecision(precision))
	set, err := data.SyntheticImages(data.SyntheticImagesOptions{Train: 8 * batch, Test: 16},
		data.PictureOptions{Crop: crop})
	if err != nil {
		t.Fatal(err)
	}
	net, err := model.Open(network, model.Options{Shape: set.Shape, Classes: set.Classes})
	if err != nil {
		t.Fatal(err)
	}
	m, c := model.NewEngine(net, d), train.Default()
	c.Agents, c.Partition, c.Batch, c.Iterations, c.EvalPoints, c.Checkpoint, c.Precision = 8, "shuffled", batch, 4, 1, 0, string(precision)
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
	room := res.Memory[0]
	if room.Opened != uint64(executor.SizeClass(blasWorkspace)+executor.SizeClass(executor.MediumBytes)+executor.SizeClass(4)) {
		t.Errorf("opening took %d bytes, want the room of cuBLAS and of marches", room.Opened)
	}
	sum := uint64(0)
	for _, p := range room.Parts {
		sum += p.Bytes
		t.Logf("%-40s %8.1f MB", p.What, float64(p.Bytes)/1e6)
	}
	if sum != room.Need {
		t.Errorf("parts of %d bytes together, want %d", sum, room.Need)
	}
	// the imaginary driver and libraries take nothing for themselves
	got, want := float64(room.Taken), float64(room.Need-d.Overhead(8*2+2))
	t.Logf("%s in %s: forecast %.1f MB, taken %.1f MB", network, precision, want/1e6, got/1e6)
	if math.Abs(got/want-1) > 0.05 {
		t.Errorf("off by %.1f %%", 100*(got/want-1))
	}
}
