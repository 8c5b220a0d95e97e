package vec

import (
	"math"
	"testing"

	"fspda/cpu/kernel"
	"fspda/internal/testing/kerneltest"
)

// loss runs softmaxCrossEntropy on rows of n logits.
func loss(t *testing.T, n int, logits, labels []float32) (mean float32, grad []float32) {
	t.Helper()
	out, grad := make([]float32, 1), make([]float32, len(logits))
	o := &kernel.Args{In: [][]float32{logits, labels}, Out: [][]float32{out, grad}, Dims: []int{len(labels), n}}
	if err := softmaxCrossEntropy(o); err != nil {
		t.Fatal(err)
	}
	return out[0], grad
}

// A loss near zero keeps its digits, and so does its gradient: log(1+e^-20) is not log(1).
func TestConfidentLoss(t *testing.T) {
	got, grad := loss(t, 2, []float32{20, 0}, []float32{0})
	want := math.Log1p(math.Exp(-20))
	if math.Abs(float64(got)-want) > 1e-5*want {
		t.Errorf("loss %v, want %v", got, want)
	}
	p := math.Exp(-20) / (1 + math.Exp(-20))
	if math.Abs(float64(grad[1])-p) > 1e-6*p || math.Abs(float64(grad[0])+p) > 1e-6*p {
		t.Errorf("gradient %v, want %v and its negative", grad, p)
	}
}

// Every row of the gradient sums to zero, and adding a number to a row changes nothing. Some rows
// are longer than a block of exponentials.
func TestLossInvariants(t *testing.T) {
	for _, n := range []int{1, 2, 10, expBlock, expBlock + 3, 1000} {
		const m = 5
		logits, moved, labels := kerneltest.Noise("logits", m*n), make([]float32, m*n), make([]float32, m)
		for i := range logits {
			logits[i] = float32(math.Round(float64(logits[i])*256) / 256) // so that adding is exact
			moved[i] = logits[i] + float32(i/n)*1024
		}
		for i := range labels {
			labels[i] = float32(i % n)
		}
		a, grad := loss(t, n, logits, labels)
		b, movedGrad := loss(t, n, moved, labels)
		if a != b {
			t.Errorf("n = %d: loss %v, with shifted rows %v", n, a, b)
		}
		for i := range m {
			sum := 0.0
			for j := range n {
				sum += float64(grad[i*n+j])
				if grad[i*n+j] != movedGrad[i*n+j] {
					t.Fatalf("n = %d: gradient %v at %d,%d, with shifted rows %v", n, grad[i*n+j], i, j,
						movedGrad[i*n+j])
				}
			}
			if math.Abs(sum) > 1e-7 {
				t.Errorf("n = %d: row %d of the gradient sums to %v", n, i, sum)
			}
		}
	}
}

func TestLossRefusesLabels(t *testing.T) {
	o := &kernel.Args{In: [][]float32{{1, 2}, {2}}, Out: [][]float32{{0}, {0, 0}}, Dims: []int{1, 2}}
	if err := softmaxCrossEntropy(o); err == nil {
		t.Error("label 2 of 2 classes is accepted")
	}
}

func BenchmarkSoftmaxCrossEntropy(b *testing.B) {
	const m, n = 256, 10
	o := &kernel.Args{In: [][]float32{kerneltest.Noise("logits", m*n), make([]float32, m)},
		Out: [][]float32{{0}, make([]float32, m*n)}, Dims: []int{m, n}}
	b.SetBytes(8 * m * n)
	for b.Loop() {
		if err := softmaxCrossEntropy(o); err != nil {
			b.Fatal(err)
		}
	}
}
