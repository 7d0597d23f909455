import HTTPFields

/// The header fields of a request or of a response.
public typealias HTTPHeaders = HTTPFields.HTTPHeaders
