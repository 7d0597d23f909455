package halcyon

import "encoding/json"

// Processor is a step that an image goes through. Lengths are in points, and colors are CSS colors.
type Processor string

// BlackWhite removes the colors.
const BlackWhite Processor = "blackWhite"

// MarshalJSON encodes the processor: its name, or an object with the name as its only member.
func (p Processor) MarshalJSON() ([]byte, error) { return encodeText(string(p)) }

// CustomProcessor returns a processor by its name, such as one that a cluster has registered itself. Parameters must be
// JSON values.
func CustomProcessor(name string, parameters map[string]any) Processor {
	if parameters == nil {
		parameters = map[string]any{}
	}
	return Processor(object(members{name: parameters}))
}

func processor(name string, parameters members) Processor {
	return Processor(object(members{name: json.RawMessage(object(parameters))}))
}

// Radius is the radius of round corners.
type Radius struct {
	name  string
	value float64
}

// Points returns a radius in points.
func Points(radius float64) Radius { return Radius{"radius", radius} }

// WidthFraction returns a radius as a fraction of the width of the image.
func WidthFraction(fraction float64) Radius { return Radius{"widthFraction", fraction} }

// HeightFraction returns a radius as a fraction of the height of the image.
func HeightFraction(fraction float64) Radius { return Radius{"heightFraction", fraction} }

// add adds the radius, unless it is the zero value, and the corners, unless these are all.
func (r Radius) add(parameters members, corners []ContentMode) members {
	if r.name != "" {
		parameters[r.name] = r.value
	}
	if len(corners) > 0 {
		parameters["corners"] = corners
	}
	return parameters
}

// RoundCorner rounds the corners, all if none is named. An empty background is transparent.
func RoundCorner(radius Radius, background string, corners ...ContentMode) Processor {
	return processor("roundCorner", radius.add(members{"background": optional(background)}, corners))
}

// Resize resizes the image. The mode is "aspectFit", "aspectFill", or "" to stretch it.
func Resize(width, height float64, mode string) Processor {
	return processor("resize", members{"width": width, "height": height, "mode": optional(mode)})
}

// Crop crops the image to this size around an anchor, given in fractions of its sides.
func Crop(width, height, anchorX, anchorY float64) Processor {
	anchor := json.RawMessage(object(members{"x": anchorX, "y": anchorY}))
	return processor("crop", members{"width": width, "height": height, "anchor": anchor})
}

// Blur blurs the image (Gaussian).
func Blur(radius float64) Processor { return processor("blur", members{"radius": radius}) }

// Tint replaces all colors by one.
func Tint(color string) Processor { return processor("tint", members{"color": color}) }

// OverlayColor lays a color over the image, of which a fraction remains visible.
func OverlayColor(color string, fraction float64) Processor {
	return processor("overlay", members{"color": color, "fraction": fraction})
}

// OverlayImage lays another image over the image.
func OverlayImage(source Source, opacity float64) Processor {
	return processor("overlay", members{"source": source, "opacity": opacity})
}

// BlendImage lays another image over the image with a blend mode.
func BlendImage(source Source, mode string, opacity float64) Processor {
	return processor("overlay", members{"source": source, "mode": mode, "opacity": opacity})
}

// Blend blends the image with a color. The modes have their CSS names in camel case, such as "multiply".
func Blend(mode, background string, opacity float64) Processor {
	return processor("blend", members{"mode": mode, "background": background, "opacity": opacity})
}

// ColorControls changes the brightness (neutral: 0), contrast (1), saturation (1) and exposure (0).
func ColorControls(brightness, contrast, saturation, exposure float64) Processor {
	return processor("colorControls", members{
		"brightness": brightness, "contrast": contrast, "saturation": saturation, "exposure": exposure,
	})
}

// Border draws a border, with round corners unless the radius is the zero value. An empty color is black.
func Border(width float64, color string, radius Radius, corners ...ContentMode) Processor {
	return processor("border", radius.add(members{"width": width, "color": optional(color)}, corners))
}

// Downsample shrinks the image in proportion to fit this size.
func Downsample(width, height float64) Processor {
	return processor("downsample", members{"width": width, "height": height})
}

// Sharpen sharpens the image. The defaults of Halcyon are a radius of 0.5 pixels and an amount of 1.
func Sharpen(radius, amount float64) Processor {
	return processor("sharpen", members{"radius": radius, "amount": amount})
}

// Pixelate turns the image into squares of this size.
func Pixelate(size float64) Processor { return processor("pixelate", members{"size": size}) }

// FaceArea is the area that BlurFaces and PixelateFaces change, and how.
type FaceArea struct {
	Amount     float64  `json:"amount,omitempty"`     // BlurFaces: the blur as a share of the longer side; default: 0.15
	Cells      int      `json:"cells,omitempty"`      // PixelateFaces: the squares along the longer side; default: 8
	Margin     *float64 `json:"margin,omitempty"`     // by which it exceeds the face on each side; default: 0.2
	Confidence *float64 `json:"confidence,omitempty"` // of the detector, at least; default: 0.3
}

// BlurFaces blurs all faces.
func BlurFaces(area FaceArea) Processor {
	area.Cells = 0
	return Processor(object(members{"blurFaces": area}))
}

// PixelateFaces turns all faces into squares.
func PixelateFaces(area FaceArea) Processor {
	area.Amount = 0
	return Processor(object(members{"pixelateFaces": area}))
}

// Watermark is the placement of another image over an image.
type Watermark struct {
	Source        Source      `json:"source"`
	Position      ContentMode `json:"position,omitempty"`      // default: BottomRight
	Margin        float64     `json:"margin,omitempty"`        // the distance from the sides
	WidthFraction float64     `json:"widthFraction,omitempty"` // the width as a fraction of that of the image
	Scale         float64     `json:"scale,omitempty"`         // of the own size of the watermark, without WidthFraction; default: 1
	Offset        *Offset     `json:"offset,omitempty"`        // the distance from the position
	Opacity       *float64    `json:"opacity,omitempty"`       // default: 1
	Mode          string      `json:"mode,omitempty"`          // the blend mode; default: "normal"
	Tiled         bool        `json:"tiled,omitempty"`         // repeats the watermark over the whole image
}

// Processor returns the step that places the watermark.
func (w Watermark) Processor() Processor { return Processor(object(members{"watermark": w})) }

// Offset is a distance to the right and downward.
type Offset struct {
	X float64 `json:"x"`
	Y float64 `json:"y"`
}

// Pad enlarges the canvas by a length on each side.
type Pad struct {
	Top    float64 `json:"top,omitempty"`
	Right  float64 `json:"right,omitempty"`
	Bottom float64 `json:"bottom,omitempty"`
	Left   float64 `json:"left,omitempty"`
	All    float64 `json:"all,omitempty"`   // the length for sides that are 0
	Fill   string  `json:"fill,omitempty"`  // "color", "edge", "mirror" or "blur"; default: "color"
	Color  string  `json:"color,omitempty"` // of the fill "color"; default: transparent
}

// Processor returns the step that pads the image.
func (p Pad) Processor() Processor { return Processor(object(members{"pad": p})) }

// Text is a text on an image.
type Text struct {
	Text         string      `json:"text"`                   // at most 500 characters; line feeds separate lines
	Font         string      `json:"font"`                   // the name of a font family that the workers have
	Bold         bool        `json:"bold,omitempty"`         // the bold face of the family
	Italic       bool        `json:"italic,omitempty"`       // the italic face of the family
	Size         float64     `json:"size,omitempty"`         // default: the largest size that fits
	Width        float64     `json:"width,omitempty"`        // of the box that contains the text; default: the image without its margins
	Height       float64     `json:"height,omitempty"`       // of the box
	Align        string      `json:"align,omitempty"`        // of lines: "left", "center" or "right"; default: "left"
	Color        string      `json:"color,omitempty"`        // default: black
	OutlineWidth float64     `json:"outlineWidth,omitempty"` // of the outline around the glyphs
	OutlineColor string      `json:"outlineColor,omitempty"` // default: white
	Opacity      *float64    `json:"opacity,omitempty"`      // default: 1
	Position     ContentMode `json:"position,omitempty"`     // default: Center
	Margin       float64     `json:"margin,omitempty"`       // the distance from the sides
	Offset       *Offset     `json:"offset,omitempty"`       // the distance from the position
}

// Processor returns the step that draws the text.
func (t Text) Processor() Processor { return Processor(object(members{"text": t})) }

// Mask clips the image to a shape: "circle", "ellipse", "triangle", "diamond", "pentagon", "hexagon", "octagon", "star" or
// "heart".
func Mask(shape string) Processor { return processor("mask", members{"shape": shape}) }

// MaskImage clips the image by the opacity of another image, or by its luminance if it is opaque.
func MaskImage(source Source) Processor { return processor("mask", members{"source": source}) }

// Hue rotates all hues.
func Hue(degrees float64) Processor { return processor("hue", members{"degrees": degrees}) }

// Gamma brightens the midtones (above 1), or darkens them (below 1). The default of Halcyon is 2.2.
func Gamma(gamma float64) Processor { return processor("gamma", members{"gamma": gamma}) }

// Normalize stretches the lightness to the full range. Its parameters are the percentiles that become black and white; the
// defaults of Halcyon are 1 and 99.
func Normalize(lower, upper float64) Processor {
	return processor("normalize", members{"lower": lower, "upper": upper})
}

// Duotone replaces the colors by a gradient between two of them.
func Duotone(dark, light string) Processor {
	return processor("duotone", members{"dark": dark, "light": light})
}

// Rotate rotates the image clockwise. An empty background is transparent.
func Rotate(degrees float64, background string) Processor {
	return processor("rotate", members{"degrees": degrees, "background": optional(background)})
}

// Flip mirrors the image: "horizontal" swaps left and right, "vertical" top and bottom, and "both" does both.
func Flip(direction string) Processor {
	return processor("flip", members{"direction": optional(direction)})
}
