// Package lock keeps a second garden out of the folder of the first.
package lock

import (
	"context"
	"fmt"
	"os"
	"syscall"
	"time"

	"github.com/environment-broker/environment-broker/test/garden/gardener/internal/await"
)

// patience is how long a garden that has been told to stop may take.
const patience = 15 * time.Second

// Take locks a file for this process until it ends, in whatever way, or closes the file. If another process has the lock, it may be
// about to end: Take waits a little before it gives up.
func Take(ctx context.Context, path string) (*os.File, error) {
	file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return nil, fmt.Errorf("open the lock: %w", err)
	}
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	if err := await.Until(ctx, path+" is unlocked", func(context.Context) error {
		return syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	}); err != nil {
		_ = file.Close()
		return nil, fmt.Errorf("another garden runs in this folder: %w", err)
	}
	return file, nil
}
