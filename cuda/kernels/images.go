package kernels

var _ = defineEach("images.cu", allElements,
	"images_%s dst:p bytes:p rows:p crops:p scale:p shift:p stride:i n:l h:i w:i c:i height:i width:i padded:i",
)

// Images converts images of bytes to numbers: device.Batch.Numbers on the device, with crops.
type Images struct {
	Element       Element
	N, H, W, C    int // images; pixels and channels of the stored images
	Height, Width int // pixels of the result
	Padded        int // channels of the result, at least C; the additional ones are 0
	Channels      int // length of Scale and Shift: C, or 1 for all channels

	Dst, Bytes   Address
	Rows         Address // int32: the index of each image in Bytes; 0: in order
	Crops        Address // three int32 per image: top, left, and 1 to mirror; 0: no cropping
	Scale, Shift Address // float32
}

// Call returns the launch. Output pixel y, x is input pixel y+top, x+left, or Width-1-x+left if
// mirrored; pixels outside are byte 0.
func (p Images) Call() Call {
	stride := 1
	if p.Channels == 1 {
		stride = 0
	}
	return call(p.Element.name("images"), imageBlocks(p.N, p.Height*p.Width), p.Dst, p.Bytes, p.Rows, p.Crops,
		p.Scale, p.Shift, stride, p.N, p.H, p.W, p.C, p.Height, p.Width, p.Padded)
}
