package data

import (
	"slices"
	"strings"
	"testing"

	"fspda/device"
)

// specimen is the picture of the specification, 16×20 pixels in RGB.
func specimen() (pix []uint8, shape [3]int) {
	shape = [3]int{16, 20, 3}
	for y := range shape[0] {
		for x := range shape[1] {
			for c := range shape[2] {
				pix = append(pix, uint8((37*y+11*x*x+83*c+5*x*y)%256))
			}
		}
	}
	return pix, shape
}

// changed returns the picture of the specification after an operation of a magnitude.
func changed(op operation, m float64) []uint8 {
	pix, shape := specimen()
	op.run(picture{pix, make([]uint8, len(pix)), shape[0], shape[1], shape[2]}, m)
	return pix
}

func checksum(pix []uint8) (sum int) {
	for k, v := range pix {
		sum += (k + 1) * int(v)
	}
	return sum % 1000003
}

// The operations, in their order, give the values of the specification for magnitude 9 of 31, of
// both signs.
func TestOperations(t *testing.T) {
	want := [][]int{{48309}, {543485, 559104}, {70639, 532626}, {743991, 154871}, {939639, 580667}, {503487, 630044},
		{226075, 422524}, {196361, 892693}, {114422, 25621}, {100544, 850982}, {776712}, {390644}, {49158}, {15564}}
	if len(operations) != len(want) {
		t.Fatalf("%d operations, want %d", len(operations), len(want))
	}
	_, shape := specimen()
	for i, op := range operations {
		most := op.most
		if op.side > 0 {
			most *= float64(shape[op.side-1])
		}
		m := magnitudeOf(most, 9)
		for k, sum := range want[i] {
			if got := checksum(changed(op, m)); got != sum {
				t.Errorf("%s by %v: checksum %d, want %d", op.name, m, got, sum)
			}
			if m = -m; op.signed != (len(want[i]) == 2) {
				t.Errorf("%s, value %d: signed is %v", op.name, k, op.signed)
			}
		}
	}
}

// Pictures of one channel and flat ones have no colours and no contrast, and tiny ones no inner
// pixels. Every operation of every magnitude stays within the picture.
func TestOperationsOnOddPictures(t *testing.T) {
	for _, shape := range [][3]int{{1, 1, 1}, {2, 7, 3}, {9, 2, 1}, {3, 3, 3}} {
		flat := slices.Repeat([]uint8{77}, shape[0]*shape[1]*shape[2])
		for _, op := range operations {
			for bin := range bins {
				for _, most := range []float64{op.most, op.wide} {
					pix := slices.Clone(flat)
					p := picture{pix, make([]uint8, len(pix)), shape[0], shape[1], shape[2]}
					m := magnitudeOf(most, bin)
					if op.signed {
						m = -m
					}
					op.run(p, m)
					switch op.name {
					case "Contrast", "Color", "Sharpness":
						// Values are cut off, and the weights of the luminance sum to 0.9999.
						for i, v := range pix {
							if v < 76 || v > 78 {
								t.Fatalf("%s of a flat %v picture: value %d is %d, want about 77", op.name, shape, i, v)
							}
						}
					case "AutoContrast", "Equalize", "Identity":
						if !slices.Equal(pix, flat) {
							t.Fatalf("%s changes a flat picture of shape %v: %v", op.name, shape, pix)
						}
					}
				}
			}
		}
	}
}

// RandAugment and TrivialAugment choose every operation about equally often, with the bins and signs
// that they say, and run after crop and mirror. Evaluation and batch norm see other pictures.
func TestPolicies(t *testing.T) {
	for text, want := range map[string]policy{"": {}, "none": {}, "randaugment": {ops: 2, magnitude: 9},
		"randaugment(3, 30)": {ops: 3, magnitude: 30}, "trivialaugment": {ops: 1, wide: true}} {
		if got, err := parsePolicy(text); err != nil || got != want {
			t.Errorf("%q: %v, %v, want %v", text, got, err, want)
		}
	}
	for _, text := range []string{"rand", "randaugment(2)", "randaugment(0,9)", "randaugment(2,31)",
		"randaugment(17,1)", "randaugment(2,9", "randaugment(2,9)x", "trivialaugment(1)"} {
		if err := CheckPolicy(text); err == nil {
			t.Errorf("%q is accepted", text)
		}
	}
	set := coloured(t, 30, CIFAR)
	if err := set.setPolicy("randaugment"); err != nil {
		t.Fatal(err)
	}
	examples := []int32{7, 0, 29, 3, 12, 5, 18, 7}
	batch := func(s Split, step int) (b device.Batch) {
		if err := s.gatherAugmented(&b, examples, nil, augmentKey{1, 2, step}, new(imageScratch), nil); err != nil {
			t.Fatal(err)
		}
		return b
	}
	plain := set.Train
	plain.policy = policy{}
	differs := 0
	for step := range 10 {
		got, before := batch(set.Train, step), batch(plain, step)
		if again := batch(set.Train, step); !slices.Equal(again.X, got.X) {
			t.Fatal("a second batch of the step differs")
		}
		for i := range examples {
			if !slices.Equal(got.X[i*90:(i+1)*90], before.X[i*90:(i+1)*90]) {
				differs++
			}
		}
		var norms device.Batch
		err := set.Train.GatherAugmented(&norms, examples, 1, 2, step)
		if err != nil || !slices.Equal(norms.X, before.X) {
			t.Errorf("batch norm is measured on other pictures than cropped and mirrored ones: %v", err)
		}
	}
	if differs < 40 || differs == 80 {
		t.Errorf("%d of 80 pictures differ, want most: two Identities leave one as it is", differs)
	}
	if err := set.setPolicy("randaugment(2,99)"); err == nil || !strings.Contains(err.Error(), "magnitude 0 to 30") {
		t.Errorf("error %v of a magnitude of 99", err)
	}
}

// The draws of a picture are its operations: with the numbers of a stream, the policy gives what the
// operations give one after the other.
func TestPolicyIsItsOperations(t *testing.T) {
	for _, policy := range []policy{{ops: 3, magnitude: 12}, {ops: 1, wide: true}} {
		seen := map[string]bool{}
		for step := range 300 {
			got, shape := specimen()
			want, _ := specimen()
			stream := augmentKey{1, 0, step}.stream(0)
			again := stream
			policy.run(got, shape, new(imageScratch), &stream)
			for range policy.ops {
				op := operations[again.IntN(14)]
				seen[op.name] = true
				bin, most := policy.magnitude, op.most
				switch {
				case policy.wide && op.wide > 0:
					bin, most = again.IntN(31), op.wide
				case strings.HasSuffix(op.name, "teX"): // TranslateX
					most *= 20
				case strings.HasSuffix(op.name, "teY"):
					most *= 16
				}
				m := most * (float64(bin) / 30)
				if op.signed && again.IntN(2) == 1 {
					m = -m
				}
				op.run(picture{want, make([]uint8, len(want)), 16, 20, 3}, m)
			}
			if !slices.Equal(got, want) || stream != again {
				t.Fatalf("step %d of %+v: another picture, or other draws", step, policy)
			}
		}
		if len(seen) != len(operations) {
			t.Errorf("%+v chose %d operations, want all %d", policy, len(seen), len(operations))
		}
	}
}
