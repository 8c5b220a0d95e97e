package kernels

import "fmt"

var _ = defineEach("pool.cu", allElements,
	"max_pool_%s y:p at:p x:p images:l h:i w:i c:i r:i stride:i pad:i p:i q:i",
	"max_pool_norm_%s y:p at:p x:p images:l h:i w:i c:i r:i stride:i pad:i p:i q:i mean:p scale:p shift:p",
	"max_pool_grad_%s dx:p dy:p at:p images:l h:i w:i c:i r:i stride:i pad:i p:i q:i",
	"avg_pool_%s y:p x:p images:l m:i c:i",
	"avg_pool_grad_%s dx:p dy:p images:l m:i c:i",
)

// Pool is a pooling of images of H×W pixels and C channels by R×R windows.
type Pool struct {
	Element                         Element
	Images, H, W, C, R, Stride, Pad int
}

// P and Q return the height and width of the output.
func (g Pool) P() int { return (g.H+2*g.Pad-g.R)/g.Stride + 1 }
func (g Pool) Q() int { return (g.W+2*g.Pad-g.R)/g.Stride + 1 }

// packs returns the number of packs per pixel.
func (e Element) packs(c int) int { return (c + e.Pack() - 1) / e.Pack() }

// imageBlocks returns the geometry of a number of threads per image.
func imageBlocks(images, each int) Launch {
	if each > 1<<31-threads {
		panic(fmt.Sprintf("kernels: %d threads per image, at most %d are supported", each, 1<<31-threads))
	}
	l := over(each)
	l.Grid[1] = uint32(min(images, 65535))
	l.Grid[2] = uint32((images + 65534) / 65535)
	return l
}

func (g Pool) Max(y, at, x Address) Call {
	return call(g.Element.name("max_pool"), imageBlocks(g.Images, g.P()*g.Q()*g.Element.packs(g.C)), y, at, x, g.Images,
		g.H, g.W, g.C, g.R, g.Stride, g.Pad, g.P(), g.Q())
}

// MaxOfNorm is Max of ReLU((x-mean)·scale + shift), which Norm.Apply would compute.
func (g Pool) MaxOfNorm(y, at, x, mean, scale, shift Address) Call {
	return call(g.Element.name("max_pool_norm"), imageBlocks(g.Images, g.P()*g.Q()*g.Element.packs(g.C)), y, at, x,
		g.Images, g.H, g.W, g.C, g.R, g.Stride, g.Pad, g.P(), g.Q(), mean, scale, shift)
}

func (g Pool) MaxGrad(dx, dy, at Address) Call {
	return call(g.Element.name("max_pool_grad"), imageBlocks(g.Images, g.H*g.W*g.Element.packs(g.C)), dx, dy, at,
		g.Images, g.H, g.W, g.C, g.R, g.Stride, g.Pad, g.P(), g.Q())
}

// AvgPool is device.AvgPool over the m pixels of each image.
func AvgPool(e Element, y, x Address, images, m, c int) Call {
	return call(e.name("avg_pool"), over(images*c), y, x, images, m, c)
}

// AvgPoolGrad is device.AvgPoolGrad.
func AvgPoolGrad(e Element, dx, dy Address, images, m, c int) Call {
	return call(e.name("avg_pool_grad"), imageBlocks(images, m*e.packs(c)), dx, dy, images, m, c)
}
