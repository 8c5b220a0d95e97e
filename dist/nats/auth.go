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

// Routes between NATS servers authenticate the servers only: any agent of the mesh could publish on
// any subject. Therefore agents with certificates authenticate their frames over NATS. A handshake
// contains the certificate. The keys of two certificates agree on a shared secret (ECDH), from
// which HKDF derives one key per direction and pair of incarnations. The authentication data of a
// frame is the incarnation of the receiver, a nonce unique within the sender's incarnation, and the
// tag of AES-GCM over header, payload and these two numbers. It replaces the checksum of the
// payload. Frames are not encrypted.
//
// Direct links need no tags: TLS authenticates both ends.
const authSize = 8 + 8 + tagSize

const tagSize = 16

// maxCert is the maximal size of a certificate in a handshake.
const maxCert = 8 << 10

// authenticator authenticates the frames of one incarnation of an agent.
type authenticator struct {
	*agentCert
	key         *ecdh.PrivateKey
	run         string
	rank        int
	incarnation uint64
	nonces      atomic.Uint64 // the latest one in use
}

// newAuthenticator returns nil for credentials without certificates of a run.
func newAuthenticator(o Options, incarnation uint64) (*authenticator, error) {
	m := o.TLS.agent
	if m == nil {
		return nil, nil
	}
	var key *ecdh.PrivateKey
	err := fmt.Errorf("its key is a %T", m.pair.PrivateKey)
	if k, ok := m.pair.PrivateKey.(*ecdsa.PrivateKey); ok {
		key, err = k.ECDH()
	}
	if err != nil {
		return nil, fmt.Errorf("nats: the certificate of agent %d cannot authenticate messages: %w; expected an "+
			"ECDSA key, as fspda certs makes", o.Self, err)
	}
	return &authenticator{agentCert: m, key: key, run: o.Run, rank: o.Self, incarnation: incarnation}, nil
}

// cert returns the certificate for the handshake, nil without one.
func (s *authenticator) cert() []byte {
	if s == nil {
		return nil
	}
	return s.pair.Leaf.Raw
}

// sharedSecret returns the ECDH secret shared with the holder of a certificate, which must name the
// agent of that rank.
func (s *authenticator) sharedSecret(der []byte, rank int) ([]byte, error) {
	if len(der) == 0 || len(der) > maxCert {
		return nil, &FrameError{Got: fmt.Sprintf("a handshake with a certificate of %d bytes", len(der))}
	}
	cert, err := x509.ParseCertificate(der)
	if err == nil {
		err = checkAgentCert(cert, s.pool, s.run, &rank)
	}
	if err != nil {
		return nil, &FrameError{Got: fmt.Sprintf(
			"a handshake in the name of agent %d whose certificate does not belong to it: %v", rank, err)}
	}
	public, ok := cert.PublicKey.(*ecdsa.PublicKey)
	if !ok {
		return nil, &FrameError{Got: fmt.Sprintf("a handshake with a certificate whose key is a %T", cert.PublicKey)}
	}
	other, err := public.ECDH()
	if err != nil {
		return nil, &FrameError{Got: "a handshake with a key unfit for ECDH: " + err.Error()}
	}
	return s.key.ECDH(other)
}

// pairKeys are the keys between two incarnations.
type pairKeys struct {
	incarnation uint64 // of the other end
	in, out     cipher.AEAD
}

// deriveKeys derives the keys between this incarnation and one of another agent.
func (s *authenticator) deriveKeys(secret []byte, rank int, incarnation uint64) *pairKeys {
	return &pairKeys{incarnation: incarnation, in: s.deriveKey(secret, rank, s.rank, incarnation, s.incarnation),
		out: s.deriveKey(secret, s.rank, rank, s.incarnation,
			incarnation)}
}

// deriveKey derives the key of one direction. The text of info is part of the protocol.
func (s *authenticator) deriveKey(secret []byte, from, to int, fromIncarnation, toIncarnation uint64) cipher.AEAD {
	info := fmt.Sprintf("fspda frames %d: run %s, agent %d to %d, life %x to %x", Version, s.run, from, to,
		fromIncarnation,
		toIncarnation)
	key, err := hkdf.Key(sha256.New, secret, nil, info, 16)
	if err != nil {
		panic("nats: cannot derive a key: " + err.Error()) // cannot happen with 16 bytes
	}
	block, err := aes.NewCipher(key)
	if err != nil {
		panic("nats: AES refuses a key of 16 bytes: " + err.Error())
	}
	gcm, err := cipher.NewGCM(block)
	if err != nil {
		panic("nats: AES does not support GCM: " + err.Error())
	}
	return gcm
}

// appendTag appends the authentication data to a frame.
func (s *authenticator) appendTag(frame []byte, keys *pairKeys) []byte {
	var nonce [12]byte
	binary.LittleEndian.PutUint64(nonce[4:], s.nonces.Add(1))
	frame = append(binary.LittleEndian.AppendUint64(frame, keys.incarnation), nonce[4:]...)
	return keys.out.Seal(frame, nonce[:], nil, frame)
}

var errTag = errors.New("its authentication tag is not from the agent that it names")

// verify checks the tag of an authenticated frame, given with its authentication data.
func (k *pairKeys) verify(frame []byte) error {
	var nonce [12]byte
	body, tag := frame[:len(frame)-tagSize], frame[len(frame)-tagSize:]
	copy(nonce[4:], body[len(body)-8:])
	if _, err := k.in.Open(nil, nonce[:], tag, body); err != nil {
		return errTag
	}
	return nil
}

// receiverOf returns the incarnation that an authenticated frame is meant for.
func receiverOf(frame []byte) uint64 { return binary.LittleEndian.Uint64(frame[len(frame)-authSize:]) }

// keysFromCert stores the certificate of the peer and returns the keys between this incarnation and
// one of the peer.
func (p *peer) keysFromCert(der []byte, incarnation uint64) (*pairKeys, error) {
	s := p.node.auth
	p.mu.Lock()
	secret := p.secret
	if !bytes.Equal(p.certificate, der) {
		secret = nil
	}
	p.mu.Unlock()
	if secret == nil {
		var err error
		if secret, err = s.sharedSecret(der, p.id); err != nil {
			return nil, err
		}
		p.mu.Lock()
		p.certificate, p.secret = bytes.Clone(der), secret
		p.mu.Unlock()
	}
	return s.deriveKeys(secret, p.id, incarnation), nil
}

// keysFor returns the keys between this incarnation and one of the peer. It returns nil without
// certificates, or if the peer has not shown one.
func (p *peer) keysFor(incarnation uint64) *pairKeys {
	s := p.node.auth
	if s == nil || incarnation == 0 {
		return nil
	}
	p.mu.Lock()
	keys, secret := p.keys, p.secret
	p.mu.Unlock()
	if keys != nil && keys.incarnation == incarnation {
		return keys
	}
	if secret == nil {
		return nil
	}
	return s.deriveKeys(secret, p.id, incarnation)
}

// authenticated reports whether a frame of the peer's current incarnation carries a valid tag. For
// a frame of or for another incarnation it returns false without an error: such a frame is a
// handshake, which carries a certificate, or has no effect.
func (p *peer) authenticated(f *frame) (bool, error) {
	if p.node.auth == nil {
		if f.flags&flagAuthenticated != 0 {
			return false, &FrameError{Got: "an authenticated frame, but this agent has no certificate to check it"}
		}
		return true, nil
	}
	p.mu.Lock()
	keys := p.keys
	p.mu.Unlock()
	if keys == nil || keys.incarnation != f.incarnation || f.kind == kindHello && f.flags&flagAuthenticated == 0 {
		return false, nil
	}
	return p.checkTag(f, keys)
}

// checkTag checks the tag of a frame that must have one. A frame for an earlier incarnation of this
// process cannot be checked and is not authentic.
func (p *peer) checkTag(f *frame, keys *pairKeys) (authentic bool, err error) {
	err = errors.New("it has no authentication tag")
	if f.flags&flagAuthenticated != 0 {
		if receiverOf(f.whole) != p.node.incarnation {
			return false, nil
		}
		err = keys.verify(f.whole)
	}
	if err != nil {
		return false, &FrameError{Got: fmt.Sprintf("it claims to come from agent %d, but %v", p.id, err)}
	}
	return true, nil
}

// authenticateHandshake checks a handshake or refusal by the certificate in it. One that is not
// addressed to an incarnation of this process has no tag and is not authentic.
func (p *peer) authenticateHandshake(f *frame, der []byte) (authentic bool, err error) {
	if p.node.auth == nil {
		return true, nil
	}
	keys, err := p.keysFromCert(der, f.incarnation)
	if err != nil || f.flags&flagAuthenticated == 0 {
		return false, err
	}
	return p.checkTag(f, keys)
}
