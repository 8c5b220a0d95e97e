package nats

import (
	"bytes"
	"crypto/aes"
	"crypto/cipher"
	"crypto/ecdh"
	"crypto/ecdsa"
	"crypto/hkdf"
	"crypto/sha256"
	"crypto/x509"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
)

// Servers hold only servers to their certificates: who is in the mesh could speak on any subject.
// So agents that have certificates seal what they say over NATS. Handshakes show the certificates;
// their keys agree on a secret of the pair (ECDH), from which HKDF draws a key for each direction
// between two lives of their processes. The seal of a frame is the life that it is for, a number
// that no other frame of the sender's life has, and the tag of AES-GCM over header, piece and these
// two: it takes the place of the checksum of the piece. Nothing is hidden by it.
//
// The direct way needs no seals: its streams show their certificates themselves.
const sealSize = 8 + 8 + tagSize

const tagSize = 16

// maxCert is the most bytes of a certificate in a handshake.
const maxCert = 8 << 10

// signet makes the seals of one life of an agent.
type signet struct {
	*member
	key    *ecdh.PrivateKey
	run    string
	rank   int
	life   uint64
	number atomic.Uint64 // of the latest seal
}

// newSignet returns nil for credentials without certificates of a run.
func newSignet(o Options, life uint64) (*signet, error) {
	m := o.TLS.member
	if m == nil {
		return nil, nil
	}
	var key *ecdh.PrivateKey
	err := fmt.Errorf("its key is a %T", m.pair.PrivateKey)
	if k, ok := m.pair.PrivateKey.(*ecdsa.PrivateKey); ok {
		key, err = k.ECDH()
	}
	if err != nil {
		return nil, fmt.Errorf("nats: the certificate of agent %d cannot seal messages: %w; expected a key of ECDSA, as fspda certs makes", o.Self, err)
	}
	return &signet{member: m, key: key, run: o.Run, rank: o.Self, life: life}, nil
}

// cert is what others must know.
func (s *signet) cert() []byte {
	if s == nil {
		return nil
	}
	return s.pair.Leaf.Raw
}

// secret is what the agent has in common with the one whose certificate this is, which must be of
// that rank.
func (s *signet) secret(der []byte, rank int) ([]byte, error) {
	if len(der) == 0 || len(der) > maxCert {
		return nil, &FrameError{Got: fmt.Sprintf("a handshake with a certificate of %d bytes", len(der))}
	}
	cert, err := x509.ParseCertificate(der)
	if err == nil {
		err = checkMember(cert, s.pool, s.run, &rank)
	}
	if err != nil {
		return nil, &FrameError{Got: fmt.Sprintf(
			"a handshake in the name of agent %d with a certificate that is not its own: %v", rank, err)}
	}
	public, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, &FrameError{Got: fmt.Sprintf("a handshake with a certificate whose key is a %T", cert.PublicKey)}
	}
	other, err := public.ECDH()
	if err != nil {
		return nil, &FrameError{Got: "a handshake with a key that agrees with none: " + err.Error()}
	}
	return s.key.ECDH(other)
}

// seals are the keys between two lives.
type seals struct {
	life    uint64 // of the other end
	in, out cipher.AEAD
}

// between draws the keys between this life and one of another agent.
func (s *signet) between(secret []byte, rank int, life uint64) *seals {
	return &seals{life: life, in: s.draw(secret, rank, s.rank, life, s.life), out: s.draw(secret, s.rank, rank, s.life,
		life)}
}

// draw draws the key of one direction.
func (s *signet) draw(secret []byte, from, to int, fromLife, toLife uint64) cipher.AEAD {
	info := fmt.Sprintf("fspda frames %d: run %s, agent %d to %d, life %x to %x", Version, s.run, from, to, fromLife,
		toLife)
	key, err := hkdf.Key(sha256.New, secret, nil, info, 16)
	if err != nil {
		panic("nats: no key can be drawn: " + err.Error()) // 16 bytes always can
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("nats: a key of AES has not 16 bytes: " + err.Error())
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic("nats: AES without GCM: " + err.Error())
	}
	return gcm
}

// seal appends the seal of a frame.
func (s *signet) seal(frame []byte, keys *seals) []byte {
	var nonce [12]byte
	binary.LittleEndian.PutUint64(nonce[4:], s.number.Add(1))
	frame = append(binary.LittleEndian.AppendUint64(frame, keys.life), nonce[4:]...)
	return keys.out.Seal(frame, nonce[:], nil, frame)
}

var errSeal = errors.New("its seal is not that of the agent it names")

// check checks the seal of a frame, of which all is given.
func (k *seals) check(frame []byte) error {
	var nonce [12]byte
	body, tag := frame[:len(frame)-tagSize], frame[len(frame)-tagSize:]
	copy(nonce[4:], body[len(body)-8:])
	if _, err := k.in.Open(nil, nonce[:], tag, body); err != nil {
		return errSeal
	}
	return nil
}

// sealedFor is the life that a sealed frame is for.
func sealedFor(frame []byte) uint64 { return binary.LittleEndian.Uint64(frame[len(frame)-sealSize:]) }

// meet notes the certificate that a peer shows, and returns the keys between this life and one of
// the peer's.
func (p *peer) meet(der []byte, life uint64) (*seals, error) {
	s := p.node.signet
	p.mu.Lock()
	secret := p.secret
	if !bytes.Equal(p.shown, der) {
		secret = nil
	}
	p.mu.Unlock()
	if secret == nil {
		var err error
		if secret, err = s.secret(der, p.id); err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.shown, p.secret = bytes.Clone(der), secret
		p.mu.Unlock()
	}
	return s.between(secret, p.id, life), nil
}

// keysTo returns the keys between this life and one of the peer's; nil where there are no seals, or
// the peer has shown no certificate.
func (p *peer) keysTo(life uint64) *seals {
	s := p.node.signet
	if s == nil || life == 0 {
		return nil
	}
	p.mu.Lock()
	keys, secret := p.keys, p.secret
	p.mu.Unlock()
	if keys != nil && keys.life == life {
		return keys
	}
	if secret == nil {
		return nil
	}
	return s.between(secret, p.id, life)
}

// proven tells whether a frame of the peer's present life is sealed as it must be. What is of
// another life, or for another one, is a handshake, which shows what is needed, or nothing.
func (p *peer) proven(f *frame) (bool, error) {
	if p.node.signet == nil {
		if f.flags&flagSealed != 0 {
			return false, &FrameError{Got: "a sealed frame; seals take certificates, and this agent has none"}
		}
		return true, nil
	}
	p.mu.Lock()
	keys := p.keys
	p.mu.Unlock()
	if keys == nil || keys.life != f.life || f.kind == kindHello && f.flags&flagSealed == 0 {
		return false, nil
	}
	return p.sealed(f, keys)
}

// sealed checks the seal of a frame that must have one. What is for an earlier life of this process
// cannot be checked, and proves nothing.
func (p *peer) sealed(f *frame, keys *seals) (proven bool, err error) {
	err = errors.New("it has no seal")
	if f.flags&flagSealed != 0 {
		if sealedFor(f.all) != p.node.life {
			return false, nil
		}
		err = keys.check(f.all)
	}
	if err != nil {
		return false, &FrameError{Got: fmt.Sprintf("it says that it comes from agent %d, and %v", p.id, err)}
	}
	return true, nil
}

// shows checks a handshake or a refusal, which show a certificate. One that names no life of this
// process cannot have a seal, and proves nothing.
func (p *peer) shows(f *frame, der []byte) (proven bool, err error) {
	if p.node.signet == nil {
		return true, nil
	}
	keys, err := p.meet(der, f.life)
	if err != nil || f.flags&flagSealed == 0 {
		return false, err
	}
	return p.sealed(f, keys)
}
