package halcyon

import "encoding/json"

// Processor is a step that a sized image goes through. Lengths are in points, and colors are CSS colors.
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

// Watermark is the placement of another image over an image.
type Watermark struct {
	Source        Source      `json:"source"`
	Position      ContentMode `json:"position,omitempty"`      // default: BottomRight
	Margin        float64     `json:"margin,omitempty"`        // the distance from the sides
	WidthFraction float64     `json:"widthFraction,omitempty"` // the width as a fraction of that of the image
	Opacity       *float64    `json:"opacity,omitempty"`       // default: 1
	Tiled         bool        `json:"tiled,omitempty"`         // repeats the watermark over the whole image
}

// Processor returns the step that places the watermark.
func (w Watermark) Processor() Processor { return Processor(object(members{"watermark": w})) }

// Rotate rotates the image clockwise. An empty background is transparent.
func Rotate(degrees float64, background string) Processor {
	return processor("rotate", members{"degrees": degrees, "background": optional(background)})
}

// Flip mirrors the image: "horizontal" swaps left and right, "vertical" top and bottom, and "both" does both.
func Flip(direction string) Processor {
	return processor("flip", members{"direction": optional(direction)})
}
