/**
 * A client of Halcyon, a cluster of workers that load, resize and cache images. Begin with {@link org.example.halcyon.Halcyon}.
 */
package org.example.halcyon;
