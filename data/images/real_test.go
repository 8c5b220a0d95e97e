package images

import (
	"testing"

	"fspda/internal/testing/realdata"
)

// ImageNet's own files: every file decodes, and labels are the indices of the sorted wnids.
func TestRealImageNetSample(t *testing.T) {
	s := open(t, realdata.Path(t, "imagenet-sample-200.tar"))
	if s.Kind != "tar of class folders" || s.Train.Len() != 200 || s.Test != nil || len(s.Classes) != 200 {
		t.Fatalf("%s: %d pictures, %d classes, test %v", s.Kind, s.Train.Len(), len(s.Classes), s.Test)
	}
	if s.Classes[0] != "n01440764" || s.Train.Name(0) != "train/n01440764/n01440764_0.JPEG" ||
		s.Train.Label(199) != 199 {
		t.Errorf("class 0 is %s with %s; picture 199 is of class %d", s.Classes[0], s.Train.Name(0),
			s.Train.Label(199))
	}
	var p RGB
	for i := 0; i < 200; i += 7 {
		if err := s.Train.Image(&p, i); err != nil {
			t.Error(err)
		} else if p.W < 50 || p.H < 50 || len(p.Pix) != 3*p.W*p.H {
			t.Errorf("picture %d: %d×%d, %d bytes", i, p.W, p.H, len(p.Pix))
		}
	}
}

func TestRealCIFAR(t *testing.T) {
	s := open(t, realdata.Path(t, "cifar10-imagefolder.tar"))
	if s.Train.Len() != 50000 || s.Test.Len() != 10000 || len(s.Classes) != 10 || s.Classes[9] != "truck" {
		t.Fatalf("%d and %d pictures, classes %v", s.Train.Len(), s.Test.Len(), s.Classes)
	}
	for i := range 50000 {
		if s.Train.Label(i) != int32(i/5000) {
			t.Fatalf("picture %d is of class %d", i, s.Train.Label(i))
		}
	}
	var p RGB
	for _, i := range []int{0, 4999, 5000, 49999} {
		if err := s.Train.Image(&p, i); err != nil || p.W != 32 || p.H != 32 {
			t.Errorf("picture %d: %d×%d, %v", i, p.W, p.H, err)
		}
	}
}
