package runtimes

import (
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"time"
)

const (
	tokenKeyFile = "token.key"
	tokenKeySize = 32
)

// claims are what a token says. It is one of Kubernetes' for those who look into it, and signed by the server's own key.
type claims struct {
	Audience []string  `json:"aud"`
	Subject  string    `json:"sub"`
	Issued   int64     `json:"iat"`
	Expires  int64     `json:"exp"`
	Account  tokenFrom `json:"kubernetes.io"`
}

// tokenFrom is the account for which the token was issued.
type tokenFrom struct {
	Namespace string    `json:"namespace"`
	Account   reference `json:"serviceaccount"`
}

type reference struct {
	Name string `json:"name"`
	UID  string `json:"uid"`
}

// loadTokenKey takes the key from its file, or makes one the first time.
func loadTokenKey(dir string) ([]byte, error) {
	path := filepath.Join(dir, tokenKeyFile)
	key, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		key = make([]byte, tokenKeySize)
		_, _ = rand.Read(key) // it never fails
		err = replace(path, key)
	}
	if err != nil {
		return nil, fmt.Errorf("prepare the key of the runtimes' tokens: %w", err)
	}
	return key, nil
}

// issue signs a token.
func (s *Server) issue(said claims) (string, error) {
	body, err := json.Marshal(said)
	if err != nil {
		return "", fmt.Errorf("encode a token: %w", err)
	}
	encode := base64.RawURLEncoding.EncodeToString
	signed := encode([]byte(`{"alg":"HS256","typ":"JWT"}`)) + "." + encode(body)
	return signed + "." + encode(s.sign(signed)), nil
}

// read returns what a token says, if the server has issued it for the runtime and it has not expired.
func (s *Server) read(token, technicalID string) (claims, bool) {
	signed, signature, _ := cutLast(token, ".")
	_, body, _ := strings.Cut(signed, ".")
	given, err := base64.RawURLEncoding.DecodeString(signature)
	if err != nil || !hmac.Equal(given, s.sign(signed)) {
		return claims{}, false
	}
	decoded, err := base64.RawURLEncoding.DecodeString(body)
	if err != nil {
		return claims{}, false
	}
	var said claims
	if err := json.Unmarshal(decoded, &said); err != nil || len(said.Audience) != 1 || said.Audience[0] != technicalID {
		return claims{}, false
	}
	return said, time.Now().Before(time.Unix(said.Expires, 0))
}

func (s *Server) sign(text string) []byte {
	mac := hmac.New(sha256.New, s.tokenKey)
	mac.Write([]byte(text))
	return mac.Sum(nil)
}

func cutLast(text, separator string) (before, after string, found bool) {
	if at := strings.LastIndex(text, separator); at >= 0 {
		return text[:at], text[at+len(separator):], true
	}
	return text, "", false
}
