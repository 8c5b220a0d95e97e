//go:build (linux || darwin) && (amd64 || arm64) && !static

package turbojpeg

import (
	"errors"
	"fmt"
	"runtime"
	"unsafe"

	"github.com/ebitengine/purego"
)

// names are the library's file names, which the system's loader searches for.
var names = map[string][]string{
	"linux": {"libturbojpeg.so.0", "libturbojpeg.so"},
	"darwin": {"libturbojpeg.0.dylib", "/opt/homebrew/opt/jpeg-turbo/lib/libturbojpeg.0.dylib",
		"/usr/local/opt/jpeg-turbo/lib/libturbojpeg.0.dylib"},
}

// Library is the loaded libjpeg-turbo.
type Library struct {
	Name string // of the file

	initDecompress, destroy, readHeader, decompress, lastError uintptr
}

// pixelRGB is TJPF_RGB: three bytes for a pixel.
const pixelRGB = 0

func open() (*Library, error) {
	for _, name := range names[runtime.GOOS] {
		handle, err := purego.Dlopen(name, purego.RTLD_NOW|purego.RTLD_LOCAL)
		if err != nil {
			continue
		}
		l := &Library{Name: name}
		for symbol, to := range map[string]*uintptr{"tjInitDecompress": &l.initDecompress, "tjDestroy": &l.destroy,
			"tjDecompressHeader3": &l.readHeader, "tjDecompress2": &l.decompress, "tjGetErrorStr2": &l.lastError} {
			if *to, err = purego.Dlsym(handle, symbol); err != nil {
				break
			}
		}
		if err == nil {
			return l, nil
		}
	}
	return nil, notFound(names[runtime.GOOS])
}

// Decoder decodes one image at a time.
type Decoder struct {
	library  *Library
	instance *instance
}

// instance is a decoder handle of the library. It is discarded after an error, since damaged
// headers leave state in it.
type instance struct{ handle uintptr }

// NewDecoder returns a decoder. It needs no Close: a finalizer frees the handle.
func (l *Library) NewDecoder() (*Decoder, error) {
	d := &Decoder{library: l}
	return d, d.renew()
}

func (d *Decoder) renew() error {
	handle, _, _ := purego.SyscallN(d.library.initDecompress)
	if handle == 0 {
		return errors.New("turbojpeg: no memory for a decoder")
	}
	d.instance = &instance{handle}
	destroy := d.library.destroy
	runtime.AddCleanup(d.instance, func(handle uintptr) { purego.SyscallN(destroy, handle) }, handle)
	return nil
}

// Header reads the header of a JPEG file.
func (d *Decoder) Header(file []byte) (Header, error) {
	if len(file) == 0 {
		return Header{}, errors.New("turbojpeg: an empty file")
	}
	var w, h, sampling, colour int32
	r, _, _ := purego.SyscallN(d.library.readHeader, d.instance.handle, uintptr(unsafe.Pointer(&file[0])),
		uintptr(len(file)),
		uintptr(unsafe.Pointer(&w)), uintptr(unsafe.Pointer(&h)), uintptr(unsafe.Pointer(&sampling)), uintptr(
			unsafe.Pointer(&colour)))
	runtime.KeepAlive(d.instance)
	if int32(r) != 0 {
		return Header{}, d.failure()
	}
	return Header{W: int(w), H: int(h), colour: int(colour)}, nil
}

// Decode decodes a file whose header is h at 1/f of its size, f from [Reductions], to rows of RGB
// pixels without padding. It panics if dst is too small. Every warning of the library is an error.
func (d *Decoder) Decode(dst, file []byte, h Header, f int) error {
	w, rows := h.Reduced(f)
	if len(dst) < 3*w*rows || w*rows == 0 {
		panic(fmt.Sprintf("turbojpeg: %d bytes for %d×%d pixels", len(dst), w, rows))
	}
	r, _, _ := purego.SyscallN(d.library.decompress, d.instance.handle, uintptr(unsafe.Pointer(&file[0])),
		uintptr(len(file)),
		uintptr(unsafe.Pointer(&dst[0])), uintptr(w), uintptr(3*w), uintptr(rows), pixelRGB, 0)
	runtime.KeepAlive(d.instance)
	if int32(r) != 0 {
		return d.failure()
	}
	return nil
}

// failure returns the library's message and discards the instance.
func (d *Decoder) failure() error {
	return errors.Join(d.message(), d.renew())
}

func (d *Decoder) message() error {
	text, _, _ := purego.SyscallN(d.library.lastError, d.instance.handle)
	defer runtime.KeepAlive(d.instance)
	if text == 0 {
		return errors.New("turbojpeg: unknown error")
	}
	const longest = 200 // JMSG_LENGTH_MAX of libjpeg
	var message []byte
	for i := range uintptr(longest) {
		c := *(*byte)(pointer(text + i))
		if c == 0 {
			break
		}
		message = append(message, c)
	}
	return errors.New("turbojpeg: " + string(message))
}

// pointer converts an address outside Go's memory to a pointer.
func pointer(address uintptr) unsafe.Pointer { return *(*unsafe.Pointer)(unsafe.Pointer(&address)) }
