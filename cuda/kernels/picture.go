package kernels

var _ = defineEach("picture.cu", allElements,
	"pictures_%s dst:p bytes:p rows:p views:p scale:p shift:p apart:i n:l h:i w:i c:i height:i width:i room:i",
)

// Pictures turns pictures of bytes into numbers: device.Batch.Numbers on the device, with a crop.
type Pictures struct {
	Element       Element
	N, H, W, C    int // pictures, and the pixels and channels of those that are stored
	Height, Width int // of what is made of them
	Room          int // channels of what is made, C at least; those too many are 0
	Channels      int // numbers of Scale and Shift: C, or one for all

	Dst, Bytes   Address
	Rows         Address // int32: where each picture lies among Bytes, counted in pictures; 0: in order
	Views        Address // three int32 a picture: top, left, and 1 to mirror; 0: no picture is moved
	Scale, Shift Address // float32
}

// Call makes the numbers: output pixel y, x is input pixel y+top, x+left, or of a mirrored one
// Width-1-x+left; outside is byte 0.
func (p Pictures) Call() Call {
	apart := 1
	if p.Channels == 1 {
		apart = 0
	}
	return call(p.Element.name("pictures"), imageBlocks(p.N, p.Height*p.Width), p.Dst, p.Bytes, p.Rows, p.Views,
		p.Scale, p.Shift, apart, p.N, p.H, p.W, p.C,
		p.Height, p.Width, p.Room)
}
