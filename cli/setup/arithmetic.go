package setup

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"math"

	"fspda/cpu"
	"fspda/device"
	"fspda/model"
	"fspda/train"
)

// Arithmetic returns a digest of small computations: trainings of small networks, and the edges and
// coordinates of the first iterations of a run. Programs with the same digest compute the same
// bits, also if they were built of different sources.
func Arithmetic(s *train.Setup) (string, error) {
	hash := sha256.New()
	for _, n := range []struct {
		name string
		model.Options
	}{
		{"mlp", model.Options{Shape: []int{37}, Classes: 5, Hidden: []int{19}, Activation: "sigmoid"}},
		{"gn-lenet", model.Options{Shape: []int{16, 16, 3}, Classes: 5}},
		{"gpt-nano", model.Options{Classes: 17,
			Transformer: model.Transformer{Layers: 1, Heads: 2, Width: 32, Block: 9}}},
	} {
		x, err := trainedBriefly(n.name, n.Options)
		if err != nil {
			return "", fmt.Errorf("the computation by which agents compare their programs: %w", err)
		}
		for _, v := range x {
			_ = binary.Write(hash, binary.LittleEndian, math.Float32bits(v)) // A hash takes all.
		}
	}
	for t := range 3 {
		if s.Process != nil {
			fmt.Fprintln(hash, s.Process.Active(nil, t))
		}
		if s.Mask != nil {
			fmt.Fprintln(hash, s.Mask.Draw(nil, t, 0, 1))
		}
	}
	return hex.EncodeToString(hash.Sum(nil)[:8]), nil
}

// trainedBriefly returns the parameters of a network after three steps on a made-up batch.
func trainedBriefly(name string, o model.Options) ([]float32, error) {
	net, err := model.Open(name, o)
	if err != nil {
		return nil, err
	}
	const examples = 6
	e, dev := model.NewEngine(net, cpu.New()), cpu.New()
	b := device.Batch{Length: max(1, o.Transformer.Block)}
	if b.Length > 1 {
		for i := range examples * (b.Length + 1) {
			b.Tokens = append(b.Tokens, uint16(i*i%o.Classes))
		}
		for i := range examples {
			b.At = append(b.At, int64(i*(b.Length+1)))
		}
	} else {
		features := 1
		for _, n := range o.Shape {
			features *= n
		}
		for i := range examples * features {
			b.X = append(b.X, float32(i*i%257)/257-0.5)
		}
		for i := range examples {
			b.Y = append(b.Y, int32(i%o.Classes))
		}
	}
	x, g := dev.NewVector(e.Dim()), dev.NewVector(e.Dim())
	dev.Write(x, e.Init(7))
	for range 3 {
		if _, err := e.Grad(g, x, b); err != nil {
			return nil, err
		}
		dev.Do(device.Combine(x, device.Term{A: 1, V: x}, device.Term{A: -0.1, V: g}))
	}
	values := make([]float32, e.Dim())
	dev.Read(values, x)
	return values, nil
}
