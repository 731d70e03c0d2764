package console

import (
	"bytes"
	"cmp"
	"image"
	"image/color"
	"image/png"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/chromedp/chromedp"
)

// maxImage is the maximum size of a screenshot in bytes, so that the repository stays small.
const maxImage = 150 << 10

// screenshot writes an image of the window as name.png to the folder in CONSOLE_SCREENSHOTS or, if this variable is not set, to a
// temporary folder of the test.
func (b browser) screenshot(name string) {
	b.Helper()

	var taken []byte

	b.run(chromedp.CaptureScreenshot(&taken))

	compressed, err := compress(taken)
	if err != nil {
		b.Fatal(err)
	}

	if len(compressed) > maxImage {
		b.Errorf("the screenshot %s has %d bytes, more than %d", name, len(compressed), maxImage)
	}

	folder := cmp.Or(os.Getenv("CONSOLE_SCREENSHOTS"), b.TempDir())
	if err := os.MkdirAll(folder, 0o755); err != nil {
		b.Fatal(err)
	}

	if err := os.WriteFile(filepath.Join(folder, name+".png"), compressed, 0o644); err != nil {
		b.Fatal(err)
	}
}

// compress re-encodes a PNG with a palette of its most frequent colors. Apart from the colors of anti-aliased text, pages have few
// colors.
func compress(content []byte) ([]byte, error) {
	picture, err := png.Decode(bytes.NewReader(content))
	if err != nil {
		return nil, err
	}

	const colors = 256

	frequency, bounds := map[color.RGBA]int{}, picture.Bounds()

	each(bounds, func(x, y int) { frequency[rgba(picture.At(x, y))]++ })

	frequent := slices.SortedFunc(maps.Keys(frequency), func(one, other color.RGBA) int {
		return cmp.Or(cmp.Compare(frequency[other], frequency[one]), cmp.Compare(one.R, other.R), cmp.Compare(one.G, other.G), cmp.Compare(one.B, other.B))
	})

	palette := color.Palette{}
	for _, each := range frequent[:min(colors, len(frequent))] {
		palette = append(palette, each)
	}

	reduced, nearest := image.NewPaletted(bounds, palette), map[color.RGBA]uint8{}

	each(bounds, func(x, y int) {
		found := rgba(picture.At(x, y))
		if _, known := nearest[found]; !known {
			nearest[found] = uint8(palette.Index(found))
		}

		reduced.SetColorIndex(x, y, nearest[found])
	})

	var encoded bytes.Buffer

	err = (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&encoded, reduced)

	return encoded.Bytes(), err
}

func rgba(from color.Color) color.RGBA {
	converted, _ := color.RGBAModel.Convert(from).(color.RGBA)

	return converted
}

func each(bounds image.Rectangle, visit func(x, y int)) {
	for y := bounds.Min.Y; y < bounds.Max.Y; y++ {
		for x := bounds.Min.X; x < bounds.Max.X; x++ {
			visit(x, y)
		}
	}
}

// TestScreenshots writes the screenshots for the documentation.
func TestScreenshots(t *testing.T) {
	t.Parallel()

	f := start(t, 0)
	dashboard := f.order("3f0c7a52-8f4e-4a31-9d0e-6f6a3c1b2d4e", "orders-test")
	f.client.WaitForEnd("3f0c7a52-8f4e-4a31-9d0e-6f6a3c1b2d4e")

	b := open(t, f.base)
	*b.allowed = []string{f.issuer.Listener.Addr().String()}

	b.look(800, 620, "light")
	b.visit(dashboard)
	b.run(chromedp.Click("a.button", chromedp.ByQuery))
	b.waitText("orders-test")
	b.screenshot("console-tenant")
}
