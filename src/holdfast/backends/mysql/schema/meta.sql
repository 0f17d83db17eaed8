INSERT IGNORE INTO holdfast_meta (word, value) VALUES ('cluster', LEFT(SHA2(CONCAT(UUID(), RAND()), 256), 12));
REPLACE INTO holdfast_meta (word, value) VALUES ('version', '6');
