package dist

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"testing"

	"fspda/internal/rng"
)

// tensors are the sizes of a small network's tensors: 40 coordinates.
var tensors = []int{24, 4, 10, 2}

func parseCompressor(t testing.TB, spec, mask string, density float64, flat bool) Compressor {
	t.Helper()
	m, err := ParseMask(mask, density, tensors, 7)
	if err != nil {
		t.Fatal(err)
	}
	c, err := ParseCompressor(spec, CompressorOptions{Mask: m, Sizes: tensors, Flat: flat, Seed: 7})
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// zoo lists all compressors and their variants.
func zoo(t testing.TB) map[string]Compressor {
	return map[string]Compressor{
		"randk":                parseCompressor(t, "randk", "randk", 0.1, false),
		"randk per layer":      parseCompressor(t, "randk", "randk-per-layer", 0.2, false),
		"stratified":           parseCompressor(t, "randk", "stratified", 0.1, false),
		"bernoulli":            parseCompressor(t, "randk", "bernoulli", 0.3, false),
		"all":                  parseCompressor(t, "randk", "all", 1, false),
		"topk":                 parseCompressor(t, "topk", "randk", 0.1, false),
		"topk per layer":       parseCompressor(t, "topk", "randk-per-layer", 0.2, false),
		"topk of whole vector": parseCompressor(t, "topk", "all", 1, false),
		"qsgd":                 parseCompressor(t, "qsgd(15)", "randk", 0.1, false),
		"qsgd flat":            parseCompressor(t, "qsgd(7)", "randk", 0.1, true),
		"qsgd(1)":              parseCompressor(t, "qsgd(1)", "randk", 0.1, false),
		"qsgd maximal levels":  parseCompressor(t, "qsgd(65535)", "randk", 0.1, false),
		"qsgd-scaled":          parseCompressor(t, "qsgd-scaled(3)", "randk", 0.1, false),
		"scaled flat":          parseCompressor(t, "qsgd-scaled(2)", "randk", 0.1, true),
		"sign":                 parseCompressor(t, "sign", "randk", 0.1, false),
		"sign flat":            parseCompressor(t, "sign", "randk", 0.1, true),
		"dct":                  parseCompressor(t, "dct(8,3)", "randk", 0.1, false),
		"int(8)":               parseCompressor(t, "int(8,7)", "randk", 0.1, false),
		"int(2)":               parseCompressor(t, "int(2,256)", "randk", 0.1, false),

		"fp8":                 parseCompressor(t, "fp8(6)", "randk", 0.1, false),
		"chunk-topk":          parseCompressor(t, "chunk-topk(6,2)", "randk", 0.1, false),
		"chunk-topk whole":    parseCompressor(t, "chunk-topk(3,64)", "randk", 0.1, false),
		"chunk-topk 2 bins":   parseCompressor(t, "chunk-topk(8,1,2)", "randk", 0.1, false),
		"chunk-topk 4 bins":   parseCompressor(t, "chunk-topk(8,3,4)", "randk", 0.1, false),
		"chunk-topk 256 bins": parseCompressor(t, "chunk-topk(64,6,256)", "randk", 0.1, false),
		"identity":            parseCompressor(t, "identity", "randk", 0.1, false),
	}
}

func dim() int {
	d := 0
	for _, m := range tensors {
		d += m
	}
	return d
}

func gauss(s *rng.Stream, n int) []float32 {
	v := make([]float32, n)
	for i := range v {
		v[i] = float32(s.Norm() * math.Exp(3*s.Norm()))
	}
	return v
}

// dense returns the compressed vector as its receiver sees it.
func dense(c Compressor, p Payload) []float32 {
	if t, ok := c.(*DCT); ok {
		coefficients, v := make([]float32, p.Dim), make([]float32, p.Dim)
		for j, at := range p.Coords {
			coefficients[at] = p.Vectors[0][j]
		}
		t.Inverse(v, coefficients)
		return v
	}
	if p.Coords == nil {
		return p.Vectors[0]
	}
	v := make([]float32, p.Dim)
	for j, c := range p.Coords {
		v[c] = p.Vectors[0][j]
	}
	return v
}

// In random rounds the codec preserves the bits of every number, and the ledger counts exactly the
// bits written: in the three accountings, with indices and without.
func TestCodecWritesWhatTheLedgerCounts(t *testing.T) {
	for name, c := range zoo(t) {
		t.Run(name, func(t *testing.T) {
			s := rng.New(3, name)
			var p, back Payload
			for round := range 40 {
				v := gauss(&s, dim())
				if round%5 == 4 {
					clear(v[:24]) // a block of norm zero
				}
				if err := c.Compress(&p, v, round, round%3, 0); err != nil {
					t.Fatal(err)
				}
				for _, a := range []Accounting{SharedSeed, Packed, Reference} {
					for _, indices := range []bool{false, true} {
						checkCodec(t, c, p, &back, a, indices)
					}
				}
			}
		})
	}
}

func checkCodec(t *testing.T, c Codec, p Payload, back *Payload, a Accounting, indices bool) {
	t.Helper()
	sent := c.Sent(p)
	sent.Indices = sent.Indices || indices
	var l Ledger
	l.Send(sent)
	b, err := c.Encode([]byte("before"), p, a, indices)
	if err != nil {
		t.Fatal(err)
	}
	if string(b[:6]) != "before" {
		t.Fatal("the content of dst was overwritten")
	}
	b = b[6:]
	if want := (l.Bits(a) + 7) / 8; uint64(len(b)) != want {
		t.Errorf("%s, indices %v: %d bytes written, the ledger has %d bits", a, indices, len(b), l.Bits(a))
	}
	back.Dim, back.Coords = p.Dim, slices.Clone(p.Coords) // the coordinates that a seed gives
	if sent.DataDependent || back.Coords != nil && a != SharedSeed && indices && sent.Mask < sent.Dim {
		clear(back.Coords) // the message has them
	}
	if err := c.Decode(back, b, a, indices); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(back.Coords, p.Coords) {
		t.Errorf("%s, indices %v: coordinates %v, were %v", a, indices, back.Coords, p.Coords)
	}
	for i := range p.Vectors {
		if !slices.EqualFunc(back.Vectors[i], p.Vectors[i], sameBits) {
			t.Errorf("%s: vector %d is %v, was %v", a, i, back.Vectors[i], p.Vectors[i])
		}
	}
	if len(b) == 0 {
		return
	}
	if err := c.Decode(back, b[:len(b)-1], a, indices); err == nil {
		t.Errorf("%s: a truncated message was decoded", a)
	}
}

func sameBits(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) }

// Every compressor of the table is in the zoo, which the tests below look at.
func TestZooIsWhole(t *testing.T) {
	for _, kind := range CompressorsThat(func(k CompressorKind) bool { return k.New != nil }) {
		found := false
		for _, c := range zoo(t) {
			row, _ := CompressorNamed(c.String())
			found = found || row.Name == kind.Name
		}
		if !found {
			t.Errorf("no compressor of the zoo is a %s: add one, with its bits", kind.Form)
		}
	}
}

// Bits of a message by formula: k values of 32 bits, indices of ceil(log2 d), d signs and levels
// and one norm per block.
func TestCompressedBits(t *testing.T) {
	for name, want := range map[string]uint64{
		"randk": 4 * 32, "topk": 4 * (32 + 6), "identity": 40 * 32, "topk of whole vector": 40 * 32,
		"qsgd": 40*(1+4) + 4*32, "qsgd flat": 40*(1+3) + 32,
		"int(8)": 40*8 + 32*(4+1+2+1), "int(2)": 40*2 + 32*4, "fp8": 40*8 + 32*(4+1+2+1),
		"chunk-topk": 4*2*(32+3) + 2*(32+2) + 2*2*(32+3) + 2*32, "chunk-topk whole": 40 * 32,
		"chunk-topk 4 bins": 3*3*(2+3) + 3*(2+2) + 2*3*(2+3) + 2*2 + 4*32*5,
		"sign":              40 + 4*32, "sign flat": 40 + 32, "qsgd(1)": 40*2 + 4*32,
		"qsgd maximal levels": 40*17 + 4*32,
	} {
		var p Payload
		s := rng.New(1, "bits")
		c := zoo(t)[name]
		if err := c.Compress(&p, gauss(&s, dim()), 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		b, err := c.Encode(nil, p, SharedSeed, false)
		if err != nil {
			t.Fatal(err)
		}
		var l Ledger
		l.Send(c.Sent(p))
		if l.SharedSeed != want || uint64(len(b)) != (want+7)/8 {
			t.Errorf("%s: %d bits in the ledger, %d bytes, want %d bits", name, l.SharedSeed, len(b), want)
		}
	}
}

// E|Q(v)-v|² ≤ (1-Delta)|v|², and for unbiased qsgd E Q(v) = v; both to three standard errors.
func TestContractionAndBias(t *testing.T) {
	for name, c := range zoo(t) {
		t.Run(name, func(t *testing.T) {
			kind, _ := CompressorNamed(c.String())
			if kind.MeanDelta {
				t.Skip("the contraction depends on v: TestSign")
			}
			s := rng.New(5, "vectors")
			const rounds = 4000
			for range 3 {
				v := gauss(&s, dim())
				square := 0.0
				for _, x := range v {
					square += float64(x) * float64(x)
				}
				var p Payload
				var sum, sumSq float64
				mean, second := make([]float64, len(v)), make([]float64, len(v))
				for r := range rounds {
					if err := c.Compress(&p, v, r, 2, 0); err != nil {
						t.Fatal(err)
					}
					e := 0.0
					for i, x := range dense(c, p) {
						gap := float64(x) - float64(v[i])
						e += gap * gap
						mean[i] += gap / rounds
						second[i] += gap * gap / rounds
					}
					sum += e / square
					sumSq += e / square * e / square
				}
				m := sum / rounds
				sd := math.Sqrt(max(0, sumSq/rounds-m*m) / rounds)
				if m > 1-c.Delta()+3*sd+1e-6 {
					t.Errorf("E|Q(v)-v|²/|v|² = %.4f ± %.4f, Delta %.4f", m, sd, c.Delta())
				}
				if kind.Unbiased {
					bias, variance := 0.0, 0.0
					for i := range mean {
						bias += mean[i] * mean[i]
						variance += second[i] / rounds
					}
					if bias > 2*variance { // its mean is the variance; 40 coordinates spread it by a quarter
						t.Errorf("|E Q(v) - v|² = %g, sampling alone gives %g", bias, variance)
					}
				}
			}
		})
	}
}

// randk has a residual of exactly 1-k/d of the square on average.
func TestRandKDelta(t *testing.T) {
	c := parseCompressor(t, "randk", "randk", 0.1, false)
	s := rng.New(2, "v")
	v := gauss(&s, dim())
	total, square := 0.0, 0.0
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	var p Payload
	const rounds = 20000
	for r := range rounds {
		if err := c.Compress(&p, v, r, 0, 0); err != nil {
			t.Fatal(err)
		}
		rest := square
		for _, x := range p.Vectors[0] {
			rest -= float64(x) * float64(x)
		}
		total += rest / square / rounds
	}
	if math.Abs(total-0.9) > 0.01 {
		t.Errorf("residual %.4f, want 0.9", total)
	}
}

// topk against a reference implementation: a stable sort by magnitude.
func TestTopKPlainTwin(t *testing.T) {
	s := rng.New(9, "topk")
	for range 300 {
		n := 1 + s.IntN(50)
		k := 1 + s.IntN(n)
		v := make([]float32, n)
		for i := range v {
			v[i] = float32(s.IntN(7)-3) * []float32{1, 1e-42, 1e30}[s.IntN(3)] // ties, tiny and huge numbers
		}
		order := make([]uint32, n)
		for i := range order {
			order[i] = uint32(i)
		}
		slices.SortStableFunc(order, func(a, b uint32) int {
			x, y := math.Abs(float64(v[a])), math.Abs(float64(v[b]))
			switch {
			case x > y:
				return -1
			case x < y:
				return 1
			}
			return 0
		})
		want := slices.Clone(order[:k])
		slices.Sort(want)
		if got := new(Payload).largest(nil, v, k, 0); !slices.Equal(got, want) {
			t.Fatalf("the %d largest of %v are %v, want %v", k, v, got, want)
		}
	}
}

// The same seed, iteration and agent give the same bits, in any order of calls; other ones give
// another draw.
func TestCompressRepeats(t *testing.T) {
	for name, c := range zoo(t) {
		s := rng.New(4, "repeat")
		v := gauss(&s, dim())
		draw := func(t0, agent int, which ...int) string {
			var p Payload
			if err := c.Compress(&p, v, t0, agent, len(which)); err != nil {
				t.Fatal(err)
			}
			return fmt.Sprint(p.Coords, p.Vectors)
		}
		first := draw(3, 1)
		draw(4, 1)
		if draw(3, 1) != first {
			t.Errorf("%s does not repeat", name)
		}
		kind, _ := CompressorNamed(c.String())
		if (draw(3, 1, 1) != first) != kind.Random {
			t.Errorf("%s: the second vector of an iteration is rounded as the first", name)
		}
		random := kind.Random || kind.Mask == MaskDrawn && c.Delta() < 1
		if changed := first != draw(4, 1) || first != draw(3, 2); changed != random {
			t.Errorf("%s: depends on iteration and agent: %v, want %v", name, changed, random)
		}
	}
}

// Numbers that are not finite are refused by compressors that compute with them, and preserved by
// those that copy.
func TestCompressNotFinite(t *testing.T) {
	for name, c := range zoo(t) {
		for _, bad := range []float32{float32(math.NaN()), float32(math.Inf(1)), float32(math.Inf(-1))} {
			v := make([]float32, dim())
			v[13] = bad
			var p Payload
			err := c.Compress(&p, v, 0, 0, 0)
			copies := c.Picked() != nil
			var e *NotFiniteError
			switch {
			case copies && err != nil:
				t.Errorf("%s: %v", name, err)
			case !copies && (!errors.As(err, &e) || e.At != 13):
				t.Errorf("%s: %v does not name coordinate 13", name, err)
			}
		}
	}
	q := parseCompressor(t, "qsgd(3)", "randk", 0.1, true)
	v := make([]float32, dim())
	for i := range v {
		v[i] = math.MaxFloat32
	}
	if err := q.Compress(new(Payload), v, 0, 0, 0); err == nil {
		t.Error("a norm beyond float32 was accepted")
	}
}

func TestParseCompressorErrors(t *testing.T) {
	m, err := ParseMask("randk", 0.1, tensors, 1)
	if err != nil {
		t.Fatal(err)
	}
	for _, spec := range []string{"", "randk(3)", "qsgd", "qsgd(0)", "qsgd(x)", "qsgd(65536)", "qsgd-scaled(-1)",
		"lattice(1,2)", "topp"} {
		if _, err := ParseCompressor(spec, CompressorOptions{Mask: m, Sizes: tensors}); err == nil {
			t.Errorf("%q was accepted", spec)
		}
	}
	for _, spec := range []string{"randk", "topk", "qsgd(255)", "qsgd-scaled(7)", "identity"} {
		if c := parseCompressor(t, spec, "randk", 0.5, false); c.String() != spec {
			t.Errorf("%q became %q", spec, c)
		}
	}
}

func BenchmarkCompress(b *testing.B) {
	sizes := []int{78400, 100, 1000, 10}
	m, err := ParseMask("randk", 0.1, sizes, 1)
	if err != nil {
		b.Fatal(err)
	}
	s := rng.New(1, "bench")
	v := gauss(&s, 79510)
	for _, spec := range []string{"randk", "topk", "qsgd(255)"} {
		c, err := ParseCompressor(spec, CompressorOptions{Mask: m, Sizes: sizes})
		if err != nil {
			b.Fatal(err)
		}
		b.Run(spec, func(b *testing.B) {
			var p Payload
			b.SetBytes(int64(4 * len(v)))
			b.ReportAllocs()
			for t := 0; b.Loop(); t++ {
				if err := c.Compress(&p, v, t, 0, 0); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

// Any bytes are decoded or refused with an error.
func FuzzDecode(f *testing.F) {
	f.Add([]byte{1, 2, 3}, uint8(0))
	f.Add(make([]byte, 19), uint8(5))
	f.Fuzz(func(t *testing.T, b []byte, choice uint8) {
		all := zoo(t)
		var names []string
		for name := range all {
			names = append(names, name)
		}
		slices.Sort(names)
		codecs := []Codec{parseLattice(t, "lattice(0.1,8)").Codec(2, dim()), FloatCodec{2, 3}}
		for _, name := range names {
			codecs = append(codecs, all[name])
		}
		c := codecs[int(choice)%len(codecs)]
		for _, a := range []Accounting{SharedSeed, Packed, Reference} {
			p := Payload{Dim: dim(), Coords: make([]uint32, 4)}
			if c.Decode(&p, b, a, choice%2 == 0) == nil && len(p.Vectors) == 0 {
				t.Error("nothing was decoded, and no error")
			}
		}
	})
}

// Blocks end with tensors, and with the parts that a mask takes in turn. A part has its own blocks,
// and the codec writes as many bits as the ledger counts.
func TestBlocksOfParts(t *testing.T) {
	parts := Every(mustMask(t, "parts", 1.0/3, tensors), 4)
	made, err := ParseCompressor("int(4,5)", CompressorOptions{Mask: parts, Sizes: tensors})
	if err != nil {
		t.Fatal(err)
	}
	c := made.(*blockwise)
	want := [][]int{{5, 5, 3}, {5, 5, 1, 2}, {2, 5, 5, 2}} // 13, 13 and 14 of 24, 4, 10 and 2
	for k, blocks := range want {
		if got := c.layout.parts[k].blocks; fmt.Sprint(got) != fmt.Sprint(blocks) {
			t.Errorf("part %d has blocks of %v, want %v", k, got, blocks)
		}
	}
	s := rng.New(3, "parts")
	var p, back Payload
	for _, at := range []int{3, 7, 11, 15} {
		coords := parts.Draw(nil, at, 0, 0)
		if err := c.Compress(&p, gauss(&s, len(coords)), at, 0, 0); err != nil {
			t.Fatal(err)
		}
		back.T = at
		for _, a := range []Accounting{SharedSeed, Packed, Reference} {
			checkCodec(t, c, p, &back, a, false)
		}
	}
	if err := c.Compress(&p, make([]float32, 14), 3, 0, 0); err == nil {
		t.Error("a part of another length was compressed")
	}
}

// Of each chunk of a matrix the largest numbers are sent, among equal ones the first by rows. The
// numbers of a tensor in bins have the mean of its numbers.
func TestChunkTopK(t *testing.T) {
	const rows, cols = 6, 10
	made, err := ParseCompressor("chunk-topk(3,2)", CompressorOptions{Sizes: []int{rows * cols, 4},
		Shapes: [][2]int{{rows, cols}, {4, 0}}})
	if err != nil {
		t.Fatal(err)
	}
	v := make([]float32, rows*cols+4)
	for k := range v {
		v[k] = float32(math.Mod(float64(7*k), 5)) * float32(1-2*(k%2))
	}
	var p Payload
	if err := made.Compress(&p, v, 0, 0, 0); err != nil {
		t.Fatal(err)
	}
	var want []uint32
	chunk := func(from, high, wide, stride int) {
		var at []uint32
		for i := range high {
			for j := range wide {
				at = append(at, uint32(from+i*stride+j))
			}
		}
		slices.SortStableFunc(at, func(a, b uint32) int {
			return int(math.Copysign(1, math.Abs(float64(v[b]))-math.Abs(float64(v[a])))) *
				min(1, int(100*math.Abs(math.Abs(float64(v[b]))-math.Abs(float64(v[a])))))
		})
		want = append(want, at[:2]...)
	}
	for i := 0; i < rows; i += 3 {
		for j := 0; j < cols; j += 2 {
			chunk(i*cols+j, 3, 2, cols)
		}
	}
	chunk(rows*cols, 1, 2, 4)
	chunk(rows*cols+2, 1, 2, 4)
	slices.Sort(want)
	if !slices.Equal(p.Coords, want) {
		t.Errorf("coordinates %v, want %v", p.Coords, want)
	}
	s := rng.New(5, "bins")
	for _, bins := range []int{2, 4, 16, 256} {
		c := parseCompressor(t, fmt.Sprintf("chunk-topk(8,3,%d)", bins), "randk", 0.1, false)
		v := gauss(&s, dim())
		if err := c.Compress(&p, v, 0, 0, 0); err != nil {
			t.Fatal(err)
		}
		for _, part := range c.(*chunkTopK).tensors {
			raw, coded, most, different := 0.0, 0.0, 0.0, map[float32]bool{}
			for k := range part.sent() {
				x := v[p.Coords[part.at+k]]
				raw, coded = raw+float64(x), coded+float64(p.Vectors[0][part.at+k])
				most = max(most, math.Abs(float64(x)))
				different[p.Vectors[0][part.at+k]] = true
			}
			if math.Abs(raw-coded) > 1e-5*most || len(different) > bins {
				t.Errorf("%d bins: a sum of %v became %v, of %d numbers", bins, raw, coded, len(different))
			}
		}
	}
}
